#!/usr/bin/env python3
"""Draws the figures of a muster-bench report with Matplotlib, each as SVG, PDF and PNG.

python3 plots.py [SUMMARY [FOLDER]]: SUMMARY is the report's JSON [summary.json beside this file], FOLDER takes the figures [figures beside it].
Edit this file for your paper, one function for each figure: muster-bench report keeps it, and its page shows what it draws.
It prints a line for each figure, "FILE.svg<tab>CAPTION", from which the page takes its captions.
"""
import json
import pathlib
import re
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SAVED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}  # without times, so that the same data give the same files
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#20262e"]  # Okabe and Ito: colour-blind readers tell them apart
PARTS = {"startup_s": ("start-up", "#9aa0a8"), "loader_wait_s": ("input", "#cc79a7"), "compute_s": ("compute", "#0072b2"),
         "exposed_s": ("exposed communication", "#d55e00"), "waiting_s": ("waiting for other ranks", "#e69f00"),
         "allreduce_wait_s": ("exposed communication and waiting", "#d55e00"), "test_s": ("test", "#009e73")}
plt.rcParams.update({"figure.figsize": (4.6, 3.6), "figure.constrained_layout.use": True, "font.size": 9, "axes.titlesize": 10,
                     "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 8,
                     "pdf.fonttype": 42, "svg.hashsalt": "muster", "savefig.dpi": 200})


def words(text):
    """A text from outside as Matplotlib draws it: no formula, no control character, not hidden from the legend."""
    text = "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")
    return " " + text if text.startswith("_") else text


def count(n, one):
    return f"{n:g} {one}{'' if n == 1 else 's'}"


def spread_of(found, name, scale=1):
    """Returns the value, the low and the high to draw; None if they are missing, or such as nobody can have measured."""
    value, low, high = ((found or {}).get(key) or 0 for key in (name, "low", "high"))
    return (scale * value, scale * min(value, low), scale * max(value, high)) if 1e-15 < low <= high < 1e15 else None


def against_ranks(studies, value_of, label, hides_ratios=True):
    """Points with their spreads, a colour for each study. Returns the axes, the drawn rows by their ranks, and the base's value."""
    axes, rows, base = plt.subplots()[1], {}, None
    for i, study in enumerate(studies):
        colour, name = COLOURS[i % len(COLOURS)], words(study["label"])
        for row, (value, low, high) in [(row, value_of(row)) for row in study["rows"] if value_of(row)]:
            x = row["ranks"] * 1.06 ** (i - (len(studies) - 1) / 2)  # studies stand beside each other
            base = value if base is None else base
            rows.setdefault(row["ranks"], []).append(row)
            axes.errorbar([x], [value], [[value - low], [high - value]], color=colour, capsize=3, label=name, linestyle="none",
                          marker="s" if row["simulated"] else "o", markerfacecolor="white" if row["oversubscribed"] else colour)
            name = None  # once in the legend
            if len(studies) == 1 and not (hides_ratios and row["speedup"]["within_spread"] and len(rows) > 1):
                axes.annotate(label(value), (x, value), (6, 4), textcoords="offset points", fontsize=8)
    rows = dict(sorted(rows.items()))
    nodes = [{row["nodes"] for row in found} for found in rows.values()]
    below = [f"\n{count(min(n), 'node')}" if len(n) == 1 and any(max(other) > 1 for other in nodes) else "" for n in nodes]
    axes.set_xscale("log", base=2)
    axes.set_xlabel("ranks (log scale)")
    axes.set_xticks(list(rows), [f"{n}{text}" for n, text in zip(rows, below)])
    axes.minorticks_off()
    return axes, rows, base


def add_models(axes, rows, studies, model):
    """Lines from the base: the ideal and, for one study, what its cores allow. `model` is given the speed-up, and the ranks over the base's."""
    first, cores = min(rows), {n: found[0]["cores"] for n, found in rows.items()}
    axes.plot(list(rows), [model(n / first, n / first) for n in rows], "--", color="#8a929c", zorder=0, label="ideal")
    if len(studies) == 1 and min(cores.values()) > 0 and any(n > cores[n] for n in rows):
        bound = [model(min(n, cores[n]) / min(first, cores[first]), n / first) for n in rows]
        axes.plot(list(rows), bound, ":", color="#20262e", zorder=0, label=f"bound by {count(cores[max(rows)], 'core')}")


def finish(axes, title, caption):
    axes.set_title(title, wrap=True)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=2)
    return axes.figure, title, caption


def draw_judged(studies, of):
    first = studies[0]
    axes, rows, base = against_ranks(studies, lambda row: spread_of(row["metrics"].get(first["judged"]), "median"),
                                     lambda value: f"{value:.0f}" if value >= 100 else f"{value:.3g}", hides_ratios=False)
    if len(rows) > 1:
        axes.set_yscale("log", base=2)
        if len(studies) == 1:
            power = 1 if first["judged_rate"] else 0 if first["series"] == "weak" else -1
            add_models(axes, rows, studies, lambda speedup, _: base * speedup**power)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel(words(first["judged_unit"] or first["judged"]) + (" (log scale)" if len(rows) > 1 else ""))
    return rows and finish(axes, words(first["judged"]) + of, "Medians with their spreads. Hollow: more ranks than cores. Square: simulated.")


def draw_speedup(studies, of):
    axes, rows, _ = against_ranks(studies, lambda row: spread_of(row["speedup"], "value"), lambda value: f"{value:.2f}")
    if len(rows) < 2:
        return None
    add_models(axes, rows, studies, lambda speedup, _: speedup)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("times the base (log scale)")
    return finish(axes, "Speed-up" + of, "Spreads span the quotients of the ends of both. A ratio within the spread has no figure.")


def draw_efficiency(studies, of):
    def value_of(row):
        return row["speedup"] and spread_of(row["speedup"], "value", row["speedup"]["efficiency"] / row["speedup"]["value"])

    axes, rows, _ = against_ranks(studies, value_of, lambda value: f"{100 * value:.0f}%")
    if len(rows) < 2:
        return None
    add_models(axes, rows, studies, lambda speedup, ranks: speedup / ranks)
    axes.set_ylim(0, 1.2 * max([1] + [row["speedup"]["efficiency"] for found in rows.values() for row in found]))
    axes.set_ylabel("part of the ideal")
    return finish(axes, "Efficiency" + of, "Speed-up x base ranks / ranks. A spread that leaves the figure is cut off there.")


def draw_time_parts(study, of):
    def part(row, name):
        told_apart = name == "allreduce_wait_s" and ("exposed_s" in row["metrics"] or "waiting_s" in row["metrics"])
        return 0 if told_apart else max(0, row["metrics"].get(name, {}).get("median") or 0)

    rows = [row for row in study["rows"] if sum(part(row, name) > 0 for name in PARTS) > 1]
    axes, places, left = plt.subplots()[1], range(len(rows)), [0] * len(rows)
    for name, (label, colour) in PARTS.items():
        wide = [part(row, name) for row in rows]
        if any(wide):
            axes.barh(places, wide, left=left, color=colour, label=label, height=0.7)
            left = [a + b for a, b in zip(left, wide)]
    axes.set_yticks(places, [count(row["ranks"], "rank") + (", simulated" if row["simulated"] else "") for row in rows])
    axes.set(xlabel="seconds of a run, medians", ylim=(len(rows) - 0.4, -0.6))  # the fewest ranks above
    return rows and finish(axes, "Where the time of a run goes" + of, "Of the metrics that the program tells. Exposed: not hidden behind compute.")


def draw_by_rank(study, of):
    strip, table = study["by_rank"], []
    for run in strip["runs"] if strip else []:
        middle = statistics.median([v for v in run["values"] if v is not None] or [0])
        table.append([float("nan") if v is None or not middle else 100 * (v / middle - 1) for v in run["values"]])
    if not table:
        return None
    most, axes = max([5] + [abs(v) for column in table for v in column if abs(v) < 1e15]), plt.subplots()[1]
    image = axes.imshow(list(zip(*table)), cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest",
                        extent=(0.5, len(table) + 0.5, strip["ranks"] - 0.5, -0.5))
    axes.figure.colorbar(image, label="% from the median of its run")
    axes.locator_params(integer=True)
    axes.set(xlabel="run", ylabel="rank")
    return finish(axes, f"{words(strip['metric'])} of each rank in each run{of}", f"{count(strip['ranks'], 'rank')}.")


def draw_bus_bandwidth(table):
    axes = plt.subplots()[1]
    for curve, colour in zip(table["curves"], COLOURS * len(table["curves"])):
        points = [(p["bytes"], *spread_of(p, "busbw_gbs")) for p in curve["points"] if spread_of(p, "busbw_gbs")]
        if points:
            sizes, values, low, high = zip(*points)
            spread = [[a - b for a, b in zip(values, low)], [a - b for a, b in zip(high, values)]]
            name = words(curve["name"]) + (", simulated" if curve["simulated"] else "")
            axes.errorbar(sizes, values, spread, color=colour, marker="o", markersize=3, capsize=2, linewidth=1, label=name)
    axes.set(xlabel="bytes (log scale)", ylabel="bus bandwidth, GB/s (log scale)", yscale="log")
    axes.set_xscale("log", base=2)
    title = words(f"{table['collective']} {table['type']} on {count(table['ranks'], 'rank')}")
    return axes.containers and finish(axes, title, f"Medians of the samples, out of place, with their spreads: {table['host']}, {table['file']}.")


def figures_of(report):
    """Each figure with its title and caption, in the order of the page; None, or an empty list, for one that has nothing to show."""
    studies, groups = report["studies"], {}
    for study in studies:
        groups.setdefault((study["judged"], study["judged_rate"], study["series"]), []).append(study)
    for draw in draw_judged, draw_speedup, draw_efficiency:
        for (_, _, series), members in groups.items():
            yield draw(members, f": {series} scaling" if len(groups) > 1 else "")
    for draw in draw_time_parts, draw_by_rank:
        for study in studies:
            yield draw(study, ": " + words(study["label"]) if len(studies) > 1 else "")
    yield from map(draw_bus_bandwidth, report["busbw"])


def main():
    summary = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("summary.json")
    folder, taken = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else summary.with_name("figures"), set()
    folder.mkdir(parents=True, exist_ok=True)
    for figure, title, caption in filter(None, figures_of(json.loads(summary.read_text(encoding="utf-8")))):
        name = re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-")[:100]
        name += f"-{len(taken)}" if name in taken else ""
        taken.add(name)
        for kind, metadata in SAVED.items():
            figure.savefig(folder / f"{name}.{kind}", metadata=metadata)
        print(f"{name}.svg\t{' '.join(caption.split())}")
        plt.close("all")


if __name__ == "__main__":
    main()
