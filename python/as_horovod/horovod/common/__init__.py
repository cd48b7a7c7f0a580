"""Holds what all frameworks' faces of `horovod` have in common."""
