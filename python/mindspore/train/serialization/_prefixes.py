"""Parameters whose names in a file begin with more than they do in the net."""

# What optimizers begin the names of their states with. A file of theirs holds no weights here: the net must
# not take moments for them.
_STATES = frozenset(
    (
        *("accum", "accum_update", "adam_m", "adam_v", "ax", "ax_", "exp_avg", "exp_avg_sq", "exp_inf"),
        *("lamb_m", "lamb_v", "linear", "max_exp_avg_sq", "mean_grad", "mean_square", "moment", "moment1"),
        *("moment2", "moments", "prev", "stat", "step_size", "vhat"),
    )
)


def behind(missing: list[str], given: dict) -> tuple[dict, list[str]]:
    """What `given` has for missing names behind prefixes ("backbone.fc.weight" for "fc.weight"), and these.

    As in MindSpore the first name that ends with a missing one tells a prefix, and all that are missing are
    looked for behind it.
    """
    found: dict = {}
    prefixes = []
    for name in missing:
        if name in found:
            continue
        prefix = _prefix(name, given)
        if prefix is not None:
            found |= {each: given[prefix + each] for each in missing if prefix + each in given} | found
            prefixes.append(prefix)
    return found, prefixes


def _prefix(name: str, given: dict) -> str | None:
    for each in given:
        prefix = each.removesuffix(name)
        if prefix != each and _STATES.isdisjoint(prefix.split(".")):
            return prefix
    return None
