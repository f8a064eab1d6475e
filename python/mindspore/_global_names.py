"""Compiled functions that read a global name before they assign it, as MindSpore's graphs may."""

import ast
import inspect
import re
import textwrap


def missed(function, error):
    """The name that `error`, an UnboundLocalError, misses, where `function` raised it and its module has the
    name; else None."""
    inner, place = inspect.unwrap(function), error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    code, raised = getattr(inner, "__code__", None), place.tb_frame.f_code
    if code is None or code.co_freevars or raised.co_name != code.co_name:
        return None
    match = re.search(r"local variable '(\w+)'", str(error))
    if match is None or raised.co_filename != code.co_filename or match[1] not in inner.__globals__:
        return None
    return match[1]


def beginning_with(function, names):
    """`function` with these names bound to the global ones at its begin; None where it has no source."""
    inner = inspect.unwrap(function)
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(inner))).body[0]
    except (OSError, SyntaxError):
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    definition.decorator_list = []
    definition.args.defaults, definition.args.kw_defaults = [], [None] * len(definition.args.kwonlyargs)
    begin = "\n".join(f"{name} = globals()[{name!r}]" for name in names)
    definition.body[:0] = ast.parse(begin).body
    made = {}
    module = ast.fix_missing_locations(ast.Module([definition], []))
    exec(compile(module, inner.__code__.co_filename, "exec"), inner.__globals__, made)
    again = made[definition.name]
    again.__defaults__, again.__kwdefaults__ = inner.__defaults__, inner.__kwdefaults__
    return again
