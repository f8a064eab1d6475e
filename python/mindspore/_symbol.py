"""Symbol: a size that differs from call to call, with what is known of it."""


class Symbol(int):
    """A size in the shape of a Tensor that stands for inputs (`Cell.set_inputs`): an open one, since each
    shape of a call is prepared by itself. What is said of it is kept and not looked at.

    Args:
        max (int): The largest such size; counts where it is more than `min`.
        min (int): The smallest one, from 1.
        divisor (int): From 1: the size is a multiple of it,
        remainder (int): and so much more, less than `divisor`.
        unique (bool): Whether all places with this symbol have one size.

    Raises:
        TypeError: An argument is not of its kind.
        ValueError: `min` or `divisor` is below 1, or `remainder` is no remainder of `divisor`.
    """

    def __new__(cls, max=0, min=1, divisor=1, remainder=0, unique=False):
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            if not isinstance(value, int):
                raise TypeError(f"For 'Symbol', the argument '{name}' must be int, but got {type(value)}")
        if not isinstance(unique, bool):
            raise TypeError(f"For 'Symbol', the argument 'unique' must be bool, but got {type(unique)}")
        for name, value in (("min", min), ("divisor", divisor)):
            if value <= 0:
                raise ValueError(f"For 'Symbol', the '{name}' value should be positive, but got {value}")
        if not 0 <= remainder < divisor:
            raise ValueError(
                f"For 'Symbol', the 'remainder' value should be in the range '[0, {divisor})', but got "
                f"{remainder}"
            )
        made = super().__new__(cls, -1)
        made.max, made.min, made.divisor, made.remainder, made.unique = max, min, divisor, remainder, unique
        made.id = id(made)
        return made

    def to_dict(self) -> dict:
        """What is known, by name."""
        made = {"max": self.max} if self.max > self.min else {}
        if self.min > self.divisor + self.remainder:
            made["min"] = self.min
        made.update({"divisor": self.divisor} if self.divisor != 1 else {})
        made.update({"remainder": self.remainder} if self.remainder else {})
        made.update({"id": self.id} if self.unique else {})
        return made

    def __repr__(self) -> str:
        return str(self.to_dict())

    __str__ = __repr__
