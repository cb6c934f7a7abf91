"""Commands on a model file: ``frontier``, ``pick``, ``predict``, ``report``, ``export``."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand._atomic import write_atomically
from evenhand._extras import import_extra
from evenhand.cli import options as opt
from evenhand.cli.files import VERDICTS, caught_warnings, check_writable, load, write_text
from evenhand.cli.shell import command, command_line, finish, plain_errors, printed, reached, show
from evenhand.cli.wording import spell
from evenhand.core.errors import InputError, sentences

# What of a summary is about its frontier.
ABOUT_FRONTIER = (
    *("favourable_answer", "title", "needs_group", "group_use", "asked", "tau", "comparison"),
    *("rate", "groups", "labels", "parts", "points", "chosen", "saved", "unlabelled"),
    *("all_rows", "not_compared", "objective"),
)


@command("evenhand frontier loans.model", "evenhand frontier loans.model --picture frontier.png")
def frontier(
    model: opt.ModelFile,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to draw: .png, .svg or .pdf.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print the frontier of a saved model: what accuracy each target costs.

    With --picture the frontier is drawn to a PNG, SVG or PDF file (needs matplotlib).
    """
    with plain_errors():
        from evenhand.workflow.summary import summarise

        saved = load(model, whole=True)
        summary = summarise(saved, spell)
        if picture is not None:
            check_writable(picture, model)
            _draw(saved.model[-1], picture)

    def screen(view: Any) -> None:
        view.show_frontier(summary)
        if picture is not None:
            view.say_written([picture])

    show(as_json, {key: summary[key] for key in ABOUT_FRONTIER if key in summary}, screen)


def _draw(model: Any, path: Path) -> None:
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError("bad_picture", path=path)
    import_extra("matplotlib", "plot").use("Agg")
    from evenhand.views.plots import FrontierDisplay

    figure = FrontierDisplay.from_estimator(model).figure_
    # Names of several notions may be wider than the axes.
    options = {"format": kind, "dpi": 150, "bbox_inches": "tight"}
    write_atomically(path, lambda file: figure.savefig(file, **options))


@command("evenhand pick loans.model --tau 0.9 -o loans-90.model")
def pick(
    model: opt.ModelFile,
    out: opt.Out,
    tau: Annotated[
        float | None,
        typer.Option(
            help="The new target; of several notions the strictest gets it, and the targets of the "
            "others stay in proportion."
        ),
    ] = None,
    epsilon: opt.Epsilon = None,
    as_json: opt.AsJson = False,
) -> None:
    """Move a saved model to another target along its frontier, without training and without data.

    Exit code 2 if no point reaches the target; the fairest is written then.
    """
    with plain_errors():
        from evenhand.persist import model_file as persist
        from evenhand.workflow.counting import facing_facts
        from evenhand.workflow.summary import earlier_taus, summarise

        check_writable(out, model)
        saved = load(model, whole=True)
        goal = None if tau is None else opt.parse_target(tau)
        apart = None if epsilon is None else opt.parse_difference(epsilon)
        steps = f"{saved.facts['command']}\n{command_line()}".strip()
        with caught_warnings() as caught:
            found = saved.model.at(goal, epsilon=apart)
        history = {"command": steps, "earlier_taus": earlier_taus(saved, found[-1].target_)}
        facts = facing_facts(saved.facts, saved.model[-1].fitted_, found[-1].fitted_)
        moved = persist.SavedModel(found, facts | history)
        summary = summarise(moved, spell)
        persist.save_model(moved.model, out, facts=moved.facts)
    notes = sentences(caught, spell)
    about = {"favourable_answer": summary["favourable_answer"], "model": str(out), "notes": notes}

    def screen(view: Any) -> None:
        view.show_point(summary, sentences(caught, spell, without=VERDICTS))
        view.show_proportion(summary)
        view.say_written([out])

    show(as_json, about | summary, screen)
    finish(reached(summary))


@command(
    "evenhand predict loans.model new.csv -o answers.csv",
    "zcat new.csv.gz | evenhand predict loans.model - -o - | head",
)
def predict(
    model: opt.ModelFile,
    file: opt.File,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help=(
                "File to write: CSV, compressed if the name ends in .gz, .bz2, .xz, .zip or .zst; "
                "Parquet if it ends in .parquet; - is CSV on standard output."
            ),
        ),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column of FILE to copy to the output; may be repeated."),
    ] = None,
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict labels and scores for the rows of a table.

    The output has a row for each row of FILE, in its order: the predicted label and a score for
    each label. FILE is read in chunks, so it may be larger than memory.
    """
    with plain_errors():
        from evenhand.models.card import group_use
        from evenhand.tables.write import write_chunks
        from evenhand.workflow.labels import favourable_of

        saved = load(model)
        answer, use = favourable_of(saved), group_use(saved.model)
        _check_kept(keep or [], saved.model[-1].classes_.tolist())
        answers = _predict(saved.model, file, keep or [], opt.one_character(delimiter), encoding)
        if out == "-":
            if use:
                typer.echo(f"evenhand: {use}", err=True)
            with caught_warnings() as caught, printed():
                write_chunks(answers, sys.stdout.buffer, out)
            for note in sentences(caught, spell):
                typer.echo(f"evenhand: {note}", err=True)
            return
        check_writable(Path(out), file, model)
        written: list[int] = []

        def write(handle: Any) -> None:
            written.append(write_chunks(answers, handle, out))

        with caught_warnings() as caught:
            write_atomically(out, write)
        n, notes = written[0], sentences(caught, spell)
    about = {"favourable_answer": answer, "needs_group": bool(use), "group_use": use}

    def screen(view: Any) -> None:
        view.show_use(answer, use)
        typer.echo(f"{n:,} row{'s' * (n != 1)} predicted: {out}")
        view.say_notes(notes)

    show(as_json, about | {"rows": n, "out": out, "notes": notes}, screen)


def _check_kept(keep: list[str], labels: list[Any]) -> None:
    """Refuse columns that the output would have twice."""
    own = {"prediction", *(f"score[{label}]" for label in labels)}
    for i, name in enumerate(keep):
        if name in keep[:i]:
            raise InputError("repeated_column", column=name)
        if name in own:
            raise InputError("column_of_output", column=name)


def _predict(
    model: Any, file: str, keep: list[str], delimiter: str | None, encoding: str | None
) -> Iterator[Any]:
    """Give the answers for one chunk of a file after the other."""
    import pandas as pd

    from evenhand.tables.columns import CellError, as_table
    from evenhand.tables.read import read_chunks

    n = 0
    with closing(read_chunks(file, delimiter=delimiter, encoding=encoding)) as chunks:
        for chunk in chunks:
            for name in keep:
                if name not in chunk.columns:
                    raise InputError("no_column_to_keep", file=file, column=name)
            kept, table = chunk[keep].reset_index(drop=True), as_table(chunk)
            try:
                proba = model.predict_proba(table)
                answer = {"prediction": model.predict(table)}
            except CellError as error:
                raise error.moved(n) from None
            labels = model[-1].classes_.tolist()
            answer |= {f"score[{label}]": proba[:, k] for k, label in enumerate(labels)}
            yield pd.concat([kept, pd.DataFrame(answer)], axis=1)
            n += len(chunk)


@command("evenhand report loans.model -o loans.html")
def report(
    model: opt.ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    as_json: opt.AsJson = False,
) -> None:
    """Write the report of a saved model: one HTML file that opens anywhere, offline, for the
    person who decides.
    """
    with plain_errors():
        from evenhand.views import report as reports
        from evenhand.workflow.summary import summarise

        check_writable(out, model)
        summary = summarise(load(model, whole=True), spell)
        write_text(out, reports.render(summary))
    about = {key: summary[key] for key in ("favourable_answer", "needs_group", "group_use")}

    def screen(view: Any) -> None:
        view.show_use(summary["favourable_answer"], summary["group_use"])
        typer.echo(f"written: {out}")

    show(as_json, about | {"report": str(out)}, screen)


@command("evenhand export loans.model -o loans.onnx")
def export(
    model: opt.ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="ONNX file to write.")],
    as_json: opt.AsJson = False,
) -> None:
    r"""Write a saved model as ONNX, for places without Python (needs pip install
    '.\[onnx]' in a clone).

    The graph takes a table's columns, numbers and dates as numbers, and gives the number of the
    label and the score.
    """
    with plain_errors():
        from evenhand.persist.onnx import to_onnx

        check_writable(out, model)
        data = to_onnx(load(model).model)
        write_atomically(out, lambda file: file.write(data))
    show(as_json, {"onnx": str(out)}, lambda view: typer.echo(f"written: {out}"))
