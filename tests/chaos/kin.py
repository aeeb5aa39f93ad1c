"""A parent in the storm of kin.rs: it submits children, keeps its state and waits, and checks at the start of each attempt
that it finds what was answered to the attempts before."""

import os

import hero

TURNS, STEPS = hero.params["turns"], hero.params["steps"]
NOTES = f"{hero.params['folder']}/{os.environ['HERO_JOB_ID']}"


def is_child(step):
    """Returns whether the child of a step was submitted."""
    try:
        return bool(hero.job(f"n{step}")["id"])
    except hero.Refused:
        return False


def keep():
    """Keeps the state, and notes its number outside of Hero once that is answered."""
    done["number"] += 1
    hero.checkpoint(done)
    with open(NOTES, "a", encoding="ascii") as notes:
        notes.write(f"{done['number']}\n")


def submit():
    """Submits the child of the last step, twice."""
    ids = {hero.submit("1", type="sal", name=f"n{done['step']}") for _ in range(2)}
    (done["ids"][str(done["step"])],) = ids


def broken(why):
    raise SystemExit(f"{why}: state {done}, event {came}")


def of_turn(turn):
    """Returns what came for the wait of a turn; None if what came last is for the wait before it."""
    if came is None:
        return None
    kind = turn % 4
    if kind == 0:
        return came["data"] if came.get("event") == f"go{turn}" else None
    if kind == 1:
        return came.get("children")
    if kind == 2:
        return came.get("timeout")
    return came.get("jobs")


def ids_of(turn):
    return [done["ids"][str(step)] for step in range(turn * STEPS + 1, (turn + 1) * STEPS + 1)]


def check(turn, got):
    """Fails unless it is what the wait of a turn is for. Returns what is compared at the end."""
    kind = turn % 4
    if kind == 1 and got != {"finished": done["step"], "error": 0, "missing": 0}:
        broken("the children have not ended")
    if kind == 3 and got != {id: "finished" for id in ids_of(turn)}:
        broken("the jobs have not ended")
    return got if kind == 0 else kind


def wait(turn):
    kind = turn % 4
    if kind == 0:
        hero.wait(f"go{turn}", "1h")
    if kind == 1:
        hero.wait(children=True)
    if kind == 2:
        hero.wait(length="150ms")
    hero.wait(jobs=ids_of(turn))


came = hero.event
done = hero.state or {"number": 0, "turn": 0, "step": 0, "came": [], "ids": {}}
noted = 0
if os.path.exists(NOTES):
    with open(NOTES, encoding="ascii") as lines:
        noted = max(map(int, lines), default=0)
if done["number"] < noted:
    broken(f"the state is older than {noted}, which was answered")
if is_child(done["step"] + 1):
    broken("the state is older than a child")
if done["step"] > 1 and not is_child(done["step"] - 1):
    broken("a child is lost")
if done["step"] > 0:
    submit()
while done["turn"] < TURNS:
    while done["step"] < (done["turn"] + 1) * STEPS:
        done["step"] += 1
        keep()
        submit()
    got = of_turn(done["turn"])
    if got is None:
        wait(done["turn"])
    done["came"].append(check(done["turn"], got))
    done["turn"] += 1
    keep()
hero.output(done["came"])
