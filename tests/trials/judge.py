"""Judges a run of random_faults.py by what was done to it, what it printed, and what it left."""

import dataclasses
import re
import signal

from story import IN_PLACE, MOST_RESTARTS

UP = re.compile(r"member (\d+): is up in generation (\d+) as pid (\d+) on (\S+)")
TRAINS = re.compile(r"member (\d+): trains from step (\d+), of (\d+)")
STEP = re.compile(r"muster-metric: step=(\d+)")
ENDS = re.compile(r"member (\d+): ends as rank (\d+) of (\d+) at step (\d+) with (\w+), each sample (once|not once)")
LOST = {"power", "cut"}


@dataclasses.dataclass
class Hit:
    """A fault that was done."""

    fault: object
    at_s: float
    pid: int = 0  # in its own namespace
    host: str = ""
    lines: int = 0  # of standard output before it


@dataclasses.dataclass
class Ending:
    """What is known of a run that is over."""

    code: int
    out: list
    err: list
    hits: list
    hung: str = ""
    left: list = dataclasses.field(default_factory=list)


def members_hit(ending):
    """The member numbers of ranks that a fault met, and the hosts that one met as a whole."""
    pids, hosts = set(), set()
    for hit in ending.hits:
        if hit.fault.target == "rank":
            pids.add((hit.host, hit.pid))
        elif hit.fault.target in ("agent", "host"):
            hosts.add(hit.host)
    members = set()
    for line in ending.out:
        up = UP.search(line)
        if up and any(int(up[3]) == pid and host in ("", up[4]) for host, pid in pids):
            members.add(int(up[1]))
    return members, hosts


def expected_codes(hits):
    """What a run may end with because of these: a signal's number and 128, or 1 of ranks that waited in vain."""
    codes = set()
    for hit in hits:
        if hit.fault.what in ("KILL", "SEGV", "ABRT"):
            codes.add(128 + getattr(signal, "SIG" + hit.fault.what))
        if hit.fault.what in LOST | {"STOP"} or hit.fault.target == "agent":
            codes |= {1, 125, 137}
    return codes


def why_it_may_end(story, ending):
    """The reason for which this run need not come to its end; empty if there is none."""
    for hit in ending.hits:
        if hit.fault.target in ("launcher", "guardian"):
            return f"the {hit.fault.target} was hit"
    serious = [hit for hit in ending.hits if hit.fault.target in ("rank", "agent", "host")]
    if not serious:
        return ""
    told = {int(ENDS.search(line)[1]) for line in ending.out if ENDS.search(line)}
    if members_hit(ending)[0] & told:
        return "a rank was hit as it ended"  # it has told its end, and was still there
    before = ending.out[: serious[0].lines]
    if not any(UP.search(line) for line in before) and any(hit.fault.target in ("agent", "host") for hit in serious):
        return "a host was lost before the first rank was up"
    if story.way in IN_PLACE and "--max-restarts" not in story.options():
        training = {TRAINS.search(line)[1] for line in before if TRAINS.search(line)}
        if len(training) < story.ranks:
            return "a rank was hit before elastic.run had begun on all"
        lost = sum(story.slots if story.hosts > 1 and hit.fault.target != "rank" else 1 for hit in serious)
        if story.ranks - lost < story.fewest:
            return "fewer than --min-np are left"
        second = ending.out[serious[0].lines : serious[-1].lines]
        if len(serious) > 1 and not any(TRAINS.search(line) for line in second) and any("no longer" in line for line in ending.err):
            return "a rank was hit while the others met"
    hosts = {hit.host for hit in serious if hit.fault.target != "rank"}
    if story.hosts > 1 and hosts:
        slots = (story.hosts - len(hosts)) * story.slots
        if slots < (story.fewest or story.ranks):
            return "too few slots are left"
    if len(ending.hits) >= 3 and any("failures alike" in line for line in ending.err):
        return "three failures alike"
    return ""


def judge(story, ending, expected):
    """Faults of the product, as words, and how the run ended: "right", or why it had to end."""
    faults = [f"left: {one}" for one in ending.left if not is_excused(one, ending.hits)]
    if ending.hung:
        return [ending.hung, *faults], "hung"
    text = "\n".join(ending.out + ending.err)
    for wrong in ("the ledger is wrong", "begin with different states", "not once"):
        if wrong in text:
            faults.append(f"wrong result: {wrong}")
    every = [ENDS.search(line) for line in ending.out if ENDS.search(line)]
    # Of those that were started last: the launcher may not have heard that earlier ones had come to their end.
    begun = max((at for at, line in enumerate(ending.out) if UP.search(line)), default=0)
    ends = [ENDS.search(line) for line in ending.out[begun:] if ENDS.search(line)]
    for one in every:
        if one[5] != expected:
            faults.append(f"wrong result: member {one[1]} ends with {one[5]}, and {expected} is right")
    if ending.code == 0:
        sizes = {int(one[3]) for one in ends}
        if len(sizes) != 1 or len({one[2] for one in ends}) != len(ends) or not ends:
            faults.append(f"ended with 0, and these ranks have told an end: {[one[0] for one in ends]}")
        else:
            size = sizes.pop()
            # A rank that was hit behind its last step was none of the run's any more, or left a smaller world.
            if len(ends) < size - len(ending.hits) * max(story.slots if story.hosts > 1 else 1, 1) or size < (story.fewest or story.ranks) - len(ending.hits) or size > story.ranks:
                faults.append(f"ended with 0 and {len(ends)} of {size} ranks")
        judge_kept(story, ending, faults)
        return faults, "right"
    why = why_it_may_end(story, ending)
    if not why:
        faults.append(f"ended with {ending.code} for no reason that the story gives: {last_error(ending)}")
        return faults, "ended"
    judge_verdict(story, ending, faults)
    return faults, why


def is_excused(left, hits):
    """The folder of a killed agent, or of a killed guardian and launcher: the user's next run there removes it. An agent that was stopped on another host: nobody there
    ends it, and it ends when it goes on."""
    stopped = {hit.host for hit in hits if hit.fault.target == "agent" and hit.fault.what == "STOP"}
    if "(T)" in left and "muster agent" in left and any(host and host in left for host in stopped):
        return True
    if not re.search(r"^(\S+: )?file \S*muster-", left):
        return False
    agents = {hit.host for hit in hits if hit.fault.target == "agent" and hit.fault.what != "STOP"}
    both = {hit.fault.target for hit in hits} >= {"launcher", "guardian"}
    return both or any(host in left for host in agents)


def last_error(ending):
    errors = [line for line in ending.err if line.startswith("muster: error:")]
    return errors[-1] if errors else "(no error is told)"


def judge_verdict(story, ending, faults):
    launcher = [hit for hit in ending.hits if hit.fault.target in ("launcher", "guardian")]
    if launcher:
        codes = {128 + getattr(signal, "SIG" + hit.fault.what) for hit in launcher} | expected_codes(ending.hits)
    else:
        codes = expected_codes(ending.hits)
    code = 128 - ending.code if ending.code < 0 else ending.code
    if code not in codes:
        faults.append(f"ended with {code}, and one of {sorted(codes)} would be right: {last_error(ending)}")
    if launcher:
        return
    members, hosts = members_hit(ending)
    named = [line for line in ending.err if line.startswith("muster: error:") and re.search(r"rank \d+ on|host \S+ |node\d", line)]
    if not named:
        return
    for line in named:
        rank = re.search(r"rank (\d+) on (\S+?)(?: \(member (\d+)\))?[ ,:]", line)
        if rank and int(rank[3] or rank[1]) in members:
            return
        if any(host and host in line for host in hosts):
            return
    if members or hosts:
        faults.append(f"the verdict names nobody who was hit (members {sorted(members)}, hosts {sorted(hosts)}): {named[0]}")


def judge_kept(story, ending, faults):
    """A restart from memory goes on no more than a step before what rank 0 had told, where only ranks were hit."""
    if story.way != "kept" or any(hit.fault.target != "rank" for hit in ending.hits):
        return
    newest = 0
    for line in ending.out:
        step, trains = STEP.search(line), TRAINS.search(line)
        if step:
            newest = max(newest, int(step[1]))
        elif trains and int(trains[2]) < newest - 1:
            faults.append(f"kept state was lost: step {newest} had been told, and {line}")
            return


def most_seconds(story):
    """No run takes longer by what the documents promise: 8 s of MUSTER_COMM_DEADLINE, --heartbeat and 10 s, --grace, delays of restarts, and a busy machine's slack."""
    return 90 + sum(35 + fault.mended_s for fault in story.faults) + 5 * MOST_RESTARTS
