"""What to try first: where a tenth of a profile's time or more may be gained, and how."""

_MOST_FIRST_HINTS = 5
_SMALL_STEP = 1_000_000  # nanoseconds from one step to the next, where fixed costs may rule

_ADVICE = {
    "reading data": "the step waits for it: num_parallel_workers in map() and batch(), or cheaper transforms",
    "communication": "fewer and larger calls: larger batches, fewer workers, faster links",
    "dispatch": "tracing and what stands around ops: `muster explain --trace` shows what is traced anew",
    "saving": "save less often: save_checkpoint_steps of CheckpointConfig",
    "evaluating": "evaluate less often: valid_frequency of fit",
    "script": "Python between the steps: callbacks, prints and asnumpy() of each step",
    "begin and end": "imports and what the script prepares: once, however long it trains",
}
_OF_EVALUATIONS = "what stands around the ops of evaluations: larger batches"
_OF_EAGER_OPS = (
    "Python between ops that run one by one: muster.jit of the function around them, or GRAPH_MODE"
)
_OF_SMALL_STEPS = "a step computes {}, and the rest is there for each: larger batches"
_OF_NEW_PLANS = (
    "most steps are traced and compiled anew: `muster explain --trace` shows why, equal shapes avoid it"
)
_OF_UNEQUAL_CALLS = "ranks made different calls, so waiting is among it; " + _ADVICE["communication"]


_OF_SLEEP = (
    "for most of that it ran on no processor: it slept, or waited for files, cores or Python's interpreter, "
    "which functions of map() hold: python_multiprocessing=True"
)
_OF_FEW_THREADS = "it computes with {} of {} cores, as OMP_NUM_THREADS says"


def _is_script(span):
    return span[0] in ("script", "starting")


def _begin_and_end(rank):
    """Nanoseconds of the script before the first op and behind the last that is known."""
    spans = rank.data["op_spans"]
    if not spans:
        return 0
    first = min(span[1] for span in spans)
    last = rank.data["end"] if rank.data["dropped"] else max(span[2] for span in spans)
    return sum(
        max(0, min(end, first) - begin) + max(0, end - max(begin, last))
        for _, begin, end in filter(_is_script, rank.data["phase_spans"])
    )


def _runs_one_by_one(rank):
    """Whether most of its ops are no part of a plan."""
    calls = [(op[0].endswith(", by itself"), op[3]) for op in rank.data["ops"]]
    return 2 * sum(count for alone, count in calls if alone) > sum(count for _, count in calls)


def _steps(rank):
    return sum(phase == "computing" for phase, _, _ in rank.data["phase_spans"])


def _slept(rank):
    """Nanoseconds of the script in which no processor worked for it."""
    worked = rank.data.get("worked")  # of profiles since it is written
    if worked is None:
        return 0
    slept = sum(rank.data["phases"][name] - worked[name] for name in ("script", "starting"))
    return max(0, slept - sum(op[4] for op in rank.data["ops"] if op[2]))


def _traces_anew(rank):
    """Whether most of its steps ran a plan of their own."""
    calls = [op[3] for op in rank.data["ops"] if not op[0].endswith(", by itself")]
    return bool(calls) and 4 * max(calls) < _steps(rank)


def _usual_distance(times):
    import itertools
    import statistics

    return statistics.median(later - time for time, later in itertools.pairwise(sorted(times)))


def _of_small_steps(rank, parts):
    """(share, name, advice) where what a step costs beside its ops is little for one, and most of all."""
    begins = [begin for phase, begin, _ in rank.data["phase_spans"] if phase == "computing"]
    steps, beside = len(begins), parts["dispatch"] + parts["script"]
    if steps < 10 or beside < parts["computing"] or _usual_distance(begins) > _SMALL_STEP:
        return None
    computes = f"{parts['computing'] / steps / 1000:.3g} us"
    return beside / max(1, rank.wall), "dispatch and script", _OF_SMALL_STEPS.format(computes)


def _of_rank(rank, can_tell_waiting, is_alone):
    """(share, name, advice) of all that may be gained on a rank."""
    parts = rank.shares()
    parts["begin and end"] = min(parts["script"], _begin_and_end(rank))
    parts["script"] -= parts["begin and end"]
    advice = dict(_ADVICE)
    if _runs_one_by_one(rank):
        advice["script"] = _OF_EAGER_OPS
    if 2 * (_slept(rank) - parts["begin and end"]) > parts["script"]:
        advice["script"] = _OF_SLEEP
    if not _steps(rank):
        advice["evaluating"] = _OF_EVALUATIONS
    if not can_tell_waiting:
        advice["communication"] = _OF_UNEQUAL_CALLS
    if _traces_anew(rank):
        advice["dispatch"] = _OF_NEW_PLANS
    elif small := _of_small_steps(rank, parts):
        yield small
        del advice["dispatch"], advice["script"]
    threads, cores = rank.data.get("threads", 1), rank.data.get("cores", 1)
    if is_alone and threads < cores:
        yield (
            parts["computing"] * (1 - threads / cores) / max(1, rank.wall),
            "computing",
            (_OF_FEW_THREADS.format(threads, cores)),
        )
    for name, text in advice.items():
        yield parts[name] / max(1, rank.wall), name, text


def _of_waiting(ranks):
    """Who waits most, and what the rank that waits least does meanwhile."""

    def waits(rank):
        return rank.shares()["waiting"] / max(1, rank.wall)

    last, first = min(ranks, key=waits), max(ranks, key=waits)
    parts = last.shares()
    del parts["waiting"]
    most = max(parts, key=parts.get)
    does = f"{most}, {100 * parts[most] / max(1, last.wall):.0f} % of its time"
    text = (
        f"for slower ranks: rank {last.rank}, the rank with the least waiting, is the one to look at ({does})"
    )
    return waits(first), first.rank, "waiting", text


def hints(ranks):
    """Lines: what costs a tenth or more somewhere, most first."""
    if not any(rank.data["ops"] for rank in ranks):
        return "no op of Muster's ran: a profile does not see what other libraries compute\n"
    can_tell_waiting = len({len(rank.calls) for rank in ranks}) == 1
    worst = {}
    for rank in ranks:
        for share, name, text in _of_rank(rank, can_tell_waiting, len(ranks) == 1):
            worst[name] = max(worst.get(name, (0,)), (share, rank.rank, name, text))
    found = [*worst.values(), *([_of_waiting(ranks)] if len(ranks) > 1 else [])]
    found = sorted((each for each in found if each[0] >= 0.1), reverse=True)[:_MOST_FIRST_HINTS]
    if not found:
        return "less than a tenth of the time to gain beside the ops: what they compute is what takes it\n"
    return "".join(
        f"at most {100 * share:.0f} % to gain on rank {rank}, {name}: {text}\n"
        for share, rank, name, text in found
    )
