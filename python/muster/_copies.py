"""copy.deepcopy and pickle of cells.

A cell is made anew with the arguments that its class of the library was given; then it gets the attributes,
children, parameters and modes of the original. Who shares a parameter or a child shares it in the copy. What
goes along a subclass may change in __getstate__ and __setstate__, as everywhere in Python.
"""

from _weakref import ref  # without what else `weakref` imports

from muster import _core

_ARGUMENTS = "_made_with"  # of the library's __init__, which puts them into __dict__
# By the address of a parameter that a cell of the library has made: (that cell, the name of the attribute).
_owners: dict[int, tuple[ref, str]] = {}


def _own_parameters(cell):
    """(name, parameter) of those that the cell of the library made itself."""
    own = _core.Cell.parameters_and_names(cell, expand=False)
    return [(name, value) for name, value in own if name not in cell.__dict__]


def _note_owners(tree) -> None:
    """Before anything of the tree is copied: its parameters may be met first in other cells and lists."""
    for _, cell in tree.cells_and_names():
        names = {value._address: name for name, value in _own_parameters(cell)}
        if not names or names.keys() <= _owners.keys():
            continue

        def forget(_, addresses=tuple(names)):
            for address in addresses:
                _owners.pop(address, None)

        owner = ref(cell, forget)
        _owners.update((address, (owner, name)) for address, name in names.items())


def _library_class(cls):
    return next(base for base in cls.__mro__ if base.__module__ == _core.__name__)


def _arguments_of(cell):
    """What the class of the library is made anew with."""
    if isinstance(cell, _core.CellSequence):  # others may have been added since
        children = {name: child for name, child in cell.name_cells().items() if name not in cell.__dict__}
        return (children if isinstance(cell, _core.SequentialCell) else list(children.values()),)
    known = cell.__dict__.get(_ARGUMENTS)
    if known is not None:
        return known
    # Made in C++, as get_activation() does: its repr says the arguments.
    import ast

    try:
        call = ast.parse(repr(cell), mode="eval").body
        return tuple(
            ast.literal_eval(value) for value in [*call.args, *(word.value for word in call.keywords)]
        )
    except (SyntaxError, ValueError, AttributeError):
        raise TypeError(f"{type(cell).__name__} was made by the library and cannot be copied alone") from None


def _made_below(cell):
    """[(name, state)] of the children that the library made for the cell, as the activation of a Dense."""
    return [
        (name, _inner_state(child))
        for name, child in cell.name_cells().items()
        if name not in cell.__dict__ and _ARGUMENTS not in child.__dict__
    ]


def _inner_state(cell) -> dict:
    return {
        "cell": _core._cell_state(cell),
        "parameters": [
            (name, value.value(), value.name, value.requires_grad) for name, value in _own_parameters(cell)
        ],
        "below": _made_below(cell),
    }


def _restore(cell, state) -> None:
    for name, values, path, requires_grad in state["parameters"]:
        parameter = getattr(cell, name)
        parameter.name = path
        parameter.requires_grad = requires_grad
        parameter.set_data(values)
    for name, below in state["below"]:
        _restore(cell.name_cells()[name], below)
    _core._restore_cell(cell, state["cell"])


def _getstate(self) -> dict:
    """What a copy gets: 'attributes' are those that Python code has set."""
    attributes = {name: value for name, value in self.__dict__.items() if name != _ARGUMENTS}
    tree = [(_core._cell_state(cell), _own_names(cell)) for _, cell in self.cells_and_names()]
    return {"attributes": attributes, **_inner_state(self), "tree": tree}


def _own_names(cell) -> list[str]:
    return [value.name for _, value in _core.Cell.parameters_and_names(cell, expand=False)]


def _restore_names(self, tree) -> None:
    """Children that are set on a cell take names from their place in it, whatever they had."""
    for (_, cell), (state, names) in zip(self.cells_and_names(), tree, strict=False):
        _core._restore_cell(cell, state)
        for (_, parameter), name in zip(
            _core.Cell.parameters_and_names(cell, expand=False), names, strict=False
        ):
            parameter.name = name


def _setstate(self, state: dict) -> None:
    _restore(self, state)
    for name, value in state["attributes"].items():
        setattr(self, name, value)
    _restore_names(self, state.get("tree", ()))


def _make(cls, args):
    cell = cls.__new__(cls)
    _library_class(cls).__init__(cell, *args)
    return cell


def _reduce_cell(self, protocol):
    _note_owners(self)
    return _make, (type(self), _arguments_of(self)), self.__getstate__()


def _refuse_shallow(self):
    raise TypeError(
        f"{type(self).__name__}: a shallow copy of a cell would share its children, whose names say where "
        "they belong: use copy.deepcopy"
    )


def _refuse_optimizer(self, protocol):
    raise TypeError(
        f"{type(self).__name__}: an optimizer belongs to the parameters that it updates, and is not copied: "
        "make one for those of the copied network, and give it the state: muster.load_param_into_net(new, "
        "{p.name: p for p in old.get_parameters()})"
    )


def _parameter_of(owner, name):
    return getattr(owner, name)


_reduce_alone = _core.Parameter.__reduce__


def _reduce_parameter(self):
    owner, name = _owners.get(self._address, (None, ""))
    cell = owner() if owner is not None else None
    return _reduce_alone(self) if cell is None else (_parameter_of, (cell, name))


def _deepcopy_parameter(self, memo):
    """A parameter again; that of Tensor would give a Tensor."""
    make, arguments = self.__reduce__()
    import copy

    return make(*copy.deepcopy(arguments, memo))


_core.Cell.__getstate__ = _getstate
_core.Cell.__setstate__ = _setstate


def _itself(self, memo):
    """An initializer keeps nothing that changes: a copy of a cell that was made with it has the same one."""
    return self


_core.Initializer.__copy__ = lambda self: self
_core.Initializer.__deepcopy__ = _itself
_core.Cell.__reduce_ex__ = _reduce_cell
_core.Cell.__copy__ = _refuse_shallow
_core.Optimizer.__reduce_ex__ = _refuse_optimizer
_core.Parameter.__reduce__ = _reduce_parameter
_core.Parameter.__deepcopy__ = _deepcopy_parameter
