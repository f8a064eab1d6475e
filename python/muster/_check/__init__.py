"""Which names of MindSpore a script uses, and which of them are not there: `muster compat check`."""
