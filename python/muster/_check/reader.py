"""Reads a script, without running it, and says which names of MindSpore stand where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from muster._check import provided

TENSOR, DATASET = "mindspore.Tensor", "mindspore.dataset.Dataset"
_MAKES_TENSORS = ("mindspore.ops.", "mindspore.mint.", "mindspore.numpy.")
_FORGIVING = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}


class Use(NamedTuple):
    """A name of MindSpore in a script. `keywords`: those of a call of it. `is_optional`: its lack is handled.

    `is_import`: the name is there from this line on.
    """

    path: str
    line: int
    column: int
    keywords: tuple[str, ...] = ()
    is_optional: bool = False
    is_import: bool = False


class Reader:
    """Follows what names stand for: a dotted path of MindSpore, or an instance ("mindspore.Tensor()")."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self._scopes: list[dict[str, str | None]] = [{}]
        self._optional = 0
        self._class_is_cell = False

    def visit(self, node: ast.AST) -> None:
        getattr(self, f"visit_{type(node).__name__}", self._visit_children)(node)

    def _visit_children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    # ---- What stands for what --------------------------------------------------------------------------

    def _bind(self, name: str, meaning: str | None) -> None:
        self._scopes[-1][name] = meaning

    def _meaning_of_name(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _meaning(self, node: ast.AST | None) -> str | None:
        """A path ("mindspore.nn"), an instance ("mindspore.Tensor()"), or None."""
        if isinstance(node, ast.Name):
            return self._meaning_of_name(node.id)
        if isinstance(node, ast.Attribute):
            return self._member(self._meaning(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._result(self._meaning(node.func))
        if isinstance(node, ast.BinOp):
            sides = (self._meaning(node.left), self._meaning(node.right))
            return f"{TENSOR}()" if f"{TENSOR}()" in sides else None
        if isinstance(node, ast.Subscript):
            meaning = self._meaning(node.value)
            return meaning if meaning == f"{TENSOR}()" else None
        return None

    @staticmethod
    def _member(owner: str | None, name: str) -> str | None:
        if owner is None:
            return None
        if not owner.endswith("()"):
            return f"{owner}.{name}"
        of_instance = owner.removesuffix("()")
        return f"{of_instance}.{name}" if of_instance in (TENSOR, DATASET) else None

    @staticmethod
    def _result(function: str | None) -> str | None:
        if function is None:
            return None
        owner, _, name = function.rpartition(".")
        if name in ("Tensor", "tensor", "Parameter") or (
            function.startswith(_MAKES_TENSORS) and name.islower() and name not in ("grad", "shape", "size")
        ):
            return f"{TENSOR}()"
        if name.endswith("Dataset") or (owner == DATASET and name in _GIVE_DATASETS):
            return f"{DATASET}()"
        if owner == TENSOR and name in _GIVE_TENSORS:
            return f"{TENSOR}()"
        return None

    # ---- Imports ---------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        for alias in node.names:
            if alias.name.split(".")[0] != "mindspore":
                self._bind(alias.asname or alias.name.split(".")[0], None)
                continue
            self._use(alias.name, node)
            self._bind(alias.asname or "mindspore", alias.name if alias.asname else "mindspore")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802
        is_ours = node.level == 0 and (node.module or "").split(".")[0] == "mindspore"
        for alias in node.names:
            if not is_ours:
                self._bind(alias.asname or alias.name, None)
            elif alias.name == "*":
                self._use(node.module, node)
                for name in provided.names().get(node.module, ()):
                    self._bind(name, f"{node.module}.{name}")
            else:
                self._use(f"{node.module}.{alias.name}", node)
                self._bind(alias.asname or alias.name, f"{node.module}.{alias.name}")

    # ---- Scopes and assignments ------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(each)
        self._bind(node.name, None)
        self._scopes.append({})
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for place, argument in enumerate(arguments):
            is_tensor = self._meaning(argument.annotation) == TENSOR
            if self._class_is_cell and node.name == "construct" and place > 0 and not argument.annotation:
                is_tensor = True  # cells are called with tensors; what they are not has other members
            self._bind(argument.arg, f"{TENSOR}()" if is_tensor else None)
            if argument.annotation:
                self.visit(argument.annotation)
        for argument in filter(None, (node.args.vararg, node.args.kwarg)):
            self._bind(argument.arg, None)
        for each in node.body:
            self.visit(each)
        self._scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802
        for each in (*node.bases, *node.keywords, *node.decorator_list):
            self.visit(each)
        before = self._class_is_cell
        self._class_is_cell = any((self._meaning(base) or "").endswith(".Cell") for base in node.bases)
        self._scopes.append({})
        for each in node.body:
            self.visit(each)
        self._scopes.pop()
        self._class_is_cell = before
        self._bind(node.name, None)

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        self.visit(node.value)
        meaning = self._meaning(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, meaning)
            else:
                self._forget(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        self.visit(node.annotation)
        if node.value:
            self.visit(node.value)
        if isinstance(node.target, ast.Name):
            is_tensor = self._meaning(node.annotation) == TENSOR
            self._bind(node.target.id, f"{TENSOR}()" if is_tensor else self._meaning(node.value))

    def visit_For(self, node: ast.For) -> None:  # noqa: N802
        self.visit(node.iter)
        self._forget(node.target)
        for each in (*node.body, *node.orelse):
            self.visit(each)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        self._forget(node.target)
        for each in node.ifs:
            self.visit(each)

    def visit_ListComp(self, node: ast.ListComp) -> None:  # noqa: N802
        self._scopes.append({})
        for each in (*node.generators, *ast.iter_child_nodes(node)):
            if not isinstance(each, ast.comprehension) or each in node.generators[:]:
                self.visit(each)
        self._scopes.pop()

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815

    def _forget(self, target: ast.AST) -> None:
        """A name that stands for something else from here on; x[0] = ... and x.y = ... keep x."""
        if isinstance(target, ast.Name):
            self._bind(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._forget(each)
        elif isinstance(target, ast.Starred):
            self._forget(target.value)
        else:
            self.visit(target)

    # ---- Uses ------------------------------------------------------------------------------------------

    def visit_Try(self, node: ast.Try) -> None:  # noqa: N802
        caught = {
            part.id
            for handler in node.handlers
            for part in ast.walk(handler.type or ast.Name("Exception"))
            if isinstance(part, ast.Name)
        }
        self._optional += bool(caught & _FORGIVING)
        for each in node.body:
            self.visit(each)
        self._optional -= bool(caught & _FORGIVING)
        for each in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(each)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        path = self._meaning(node.func)
        if path and not path.endswith("()"):
            self._use(path, node.func, tuple(each.arg for each in node.keywords if each.arg))
            self._visit_below(node.func)
        else:
            self.visit(node.func)
        for each in (*node.args, *node.keywords):
            self.visit(each)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        path = self._meaning(node)
        if path and not path.endswith("()"):
            self._use(path, node)
            self._visit_below(node)
        else:
            self._visit_children(node)

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802
        path = self._meaning(node)
        if path and "." in path and not path.endswith("()"):
            self._use(path, node)

    def _visit_below(self, node: ast.AST) -> None:
        """What stands in front of a chain of attributes: the call in Tensor(1).view."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            self.visit(node)

    def _use(self, path: str, node: ast.AST, keywords: tuple[str, ...] = ()) -> None:
        line, column = getattr(node, "end_lineno", node.lineno), node.col_offset + 1
        if not isinstance(node, ast.Attribute):
            line = node.lineno
        is_import = isinstance(node, (ast.Import, ast.ImportFrom))
        self.uses.append(Use(path, line, column, keywords, self._optional > 0, is_import))


_GIVE_DATASETS = {
    *("apply", "batch", "concat", "filter", "map", "padded_batch", "project", "rename", "repeat", "shuffle"),
    *("skip", "take", "zip"),
}
_GIVE_TENSORS = {
    *("abs", "astype", "broadcast_to", "clip", "copy", "cumsum", "exp", "expand_dims", "flatten", "float"),
    *("gather", "half", "int", "log", "matmul", "max", "mean", "min", "permute", "pow", "prod", "repeat"),
    *("reshape", "softmax", "sqrt", "squeeze", "std", "sum", "swapaxes", "take", "tile", "transpose"),
    *("unsqueeze", "var", "view"),
}


def uses(text: str, file: str = "<script>") -> Iterator[Use]:
    """Every use of a name of MindSpore, in the order of the lines, once for each place."""
    reader = Reader()
    reader.visit(ast.parse(text, file))
    yield from sorted(set(reader.uses), key=lambda use: (use.line, use.column, use.path))
