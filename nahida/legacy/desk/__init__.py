"""What the approval desk shows and asks."""
