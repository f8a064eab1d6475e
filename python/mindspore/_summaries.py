"""What Summary ops have given since a SummaryRecord took it."""

_values = {}  # (plugin, name): array
_records = 0  # that are open: without one, nothing is kept
_wanted = True  # between steps that a SummaryCollector leaves out: False


def opened(number):
    """One more record is open, or with -1 one less."""
    global _records
    _records += number
    if _records == 0:
        _values.clear()


def want(is_wanted):
    """Whether values of the steps from now on are kept."""
    global _wanted
    _wanted = is_wanted


def put(plugin, name, value):
    """The newest value of that name counts."""
    if _records and _wanted:
        _values[plugin, name] = value.asnumpy().copy()


def take():
    """All that was put, as (plugin, name, array); it is not given again."""
    taken = [(plugin, name, value) for (plugin, name), value in _values.items()]
    _values.clear()
    return taken
