"""What `manage.py migrate_session_keys` can be told to do: one module an act, with HELP, add_arguments() and run()."""
