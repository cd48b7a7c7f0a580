"""Serves `horovod.common.exceptions` by muster's exceptions."""

from muster.errors import CollectiveError as HorovodInternalError
from muster.errors import HostsUpdatedInterrupt

__all__ = ["HorovodInternalError", "HorovodVersionMismatchError", "HostsUpdatedInterrupt"]


class HorovodVersionMismatchError(ImportError):
    """Never raised: nothing of muster is built against a version of a framework."""

    def __init__(self, name: str = "", version: str = "", installed_version: str = "") -> None:
        super().__init__(f"{name} is installed in version {installed_version}, {version} was expected")
        self.name = name
        self.version = version
        self.installed_version = installed_version
