"""Holds the helpers of Horovod's launcher that programs and tests import."""
