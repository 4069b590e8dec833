"""Measurements and siege: whole Nahidas on this machine, with a fake platform and a fake model. `bin/bench` says more."""
