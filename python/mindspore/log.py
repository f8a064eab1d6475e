"""mindspore.log: messages of scripts on the standard error stream, by level (GLOG_v: 0 debug ... 3 error)."""

import logging

from mindspore import _names

_LEVELS = {
    "0": logging.DEBUG,
    "1": logging.INFO,
    "2": logging.WARNING,
    "3": logging.ERROR,
    "4": logging.CRITICAL,
}


def _get_logger():
    """The logger that the functions below write to."""
    logger = logging.getLogger("mindspore")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(_LEVELS.get(_names.GLOG_V, logging.WARNING))
        logger.propagate = False
    return logger


def debug(msg, *args, **kwargs):
    """A message for who looks for mistakes."""
    _get_logger().debug(msg, *args, **kwargs)


def info(msg, *args, **kwargs):
    """A message that all is well."""
    _get_logger().info(msg, *args, **kwargs)


def warning(msg, *args, **kwargs):
    """A message that something may be wrong."""
    _get_logger().warning(msg, *args, **kwargs)


def error(msg, *args, **kwargs):
    """A message that something is wrong."""
    _get_logger().error(msg, *args, **kwargs)


def critical(msg, *args, **kwargs):
    """A message that nothing can go on."""
    _get_logger().critical(msg, *args, **kwargs)


def get_level() -> str:
    """The level from which on messages are written, as GLOG_v counts: '2' for warnings."""
    return next(number for number, level in _LEVELS.items() if level >= _get_logger().level)


def set_level(level) -> None:
    """Writes messages from this level on, as GLOG_v counts."""
    if str(level) not in _LEVELS:
        raise ValueError(f"log.set_level: 0 (debug) to 4 (critical), not {level!r}")
    _get_logger().setLevel(_LEVELS[str(level)])


def get_log_config() -> dict:
    """The settings of the environment."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


_logged_once: dict = {}  # the keys


class _LogActionOnce:
    """A decorator: warnings of a logger in calls of the function are written once for each key."""

    def __init__(self, logger, key, no_warning=False):
        self.logger, self.key, self.no_warning = logger, key, no_warning

    def __call__(self, function):
        def call(*args, **kwargs):
            if not hasattr(self.logger, "warning"):
                return function(*args, **kwargs)
            warning = self.logger.warning
            if self.no_warning or self.key in _logged_once:
                self.logger.warning = lambda *args, **kwargs: None
            _logged_once[self.key] = True
            try:
                return function(*args, **kwargs)
            finally:
                self.logger.warning = warning

        return call


__all__ = [
    "critical",
    "debug",
    "error",
    "get_level",
    "get_log_config",
    "info",
    "set_level",
    "warning",
]
