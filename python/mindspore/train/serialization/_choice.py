"""What of a checkpoint is written and read: the forms that a script gives it in, names by prefixes."""

import muster


def items_of(call: str, given) -> dict:
    """The entries of a list, of parameters or of {"name": ..., "data": ...}; TypeError names another one."""
    items = {}
    for each in given:
        if isinstance(each, muster.Parameter):
            items[each.name] = each
            continue
        if not isinstance(each, dict) or not {"name", "data"} <= each.keys():
            raise TypeError(
                f"{call}: save_obj is a list of parameters, or of dicts with 'name' and 'data', "
                f"and has {type(each).__name__} {each!r}"
            )
        if not isinstance(each["name"], str):
            raise TypeError(f"{call}: a name in save_obj is a string, not {each['name']!r}")
        if isinstance(each["data"], str):
            raise TypeError(
                f"{call}: the data of {each['name']!r} in save_obj is a tensor, not {each['data']!r}: "
                "give strings in append_dict"
            )
        items[each["name"]] = each["data"]
    return items


def _prefixes(call: str, argument: str, given) -> tuple[str, ...]:
    if not isinstance(given, str | list | tuple):
        raise TypeError(f"{call}: {argument} is a string or a list of strings, not {given!r}")
    prefixes = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(each, str) for each in prefixes):
        raise TypeError(f"{call}: {argument} is a list of strings, not {given!r}")
    if not prefixes or not all(prefixes):
        raise ValueError(f"{call}: {argument} has a prefix or more, and none of no letters, not {given!r}")
    return prefixes


def chosen(call: str, values: dict, specify_prefix, filter_prefix, choice_func) -> dict:
    """The entries that the arguments leave; ValueError where that is none. Prefixes override choice_func."""
    if specify_prefix is not None:
        first = _prefixes(call, "specify_prefix", specify_prefix)
        values = {name: value for name, value in values.items() if name.startswith(first)}
    if filter_prefix is not None:
        first = _prefixes(call, "filter_prefix", filter_prefix)
        values = {name: value for name, value in values.items() if not name.startswith(first)}
    if choice_func is not None and specify_prefix is None and filter_prefix is None:
        try:
            values = {name: value for name, value in values.items() if choice_func(name)}
        except Exception as error:
            raise ValueError(f"{call}: choice_func failed: {error}") from error
    if not values:
        raise ValueError(
            f"{call}: no entry of the file is left: look at filter_prefix, specify_prefix and choice_func"
        )
    return values
