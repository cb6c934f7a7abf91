"""Commands on a table: ``audit``, ``compare``; and ``datasets``."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import options as opt
from evenhand.cli.files import check_writable, read_file, write_table
from evenhand.cli.shell import command, finish, plain_errors, printed, show
from evenhand.cli.wording import spell
from evenhand.core.errors import InputError, Parameter


@command(
    "evenhand audit new.csv --label repaid --prediction approved --sensitive sex",
    "evenhand audit loans.csv --label repaid --sensitive sex --sensitive race",
    "evenhand audit cases.csv --label decision --favourable granted --sensitive sex",
)
def audit(
    file: opt.File,
    sensitive: opt.Sensitive,
    label: opt.LabelOrNone = None,
    prediction: Annotated[str | None, typer.Option(help="Column of the predictions.")] = None,
    favourable: opt.FavourableOne = None,
    favourable_label: Annotated[
        str | None,
        typer.Option(
            help="The favourable value of --label, if it is not the one of --prediction.",
            show_default="the same as of the prediction",
        ),
    ] = None,
    privileged: Annotated[
        str | None,
        typer.Option(
            help="Group: how the rates of the others compare with its rate is shown as well."
        ),
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(help="Least ratio; 0.8 is the four-fifths rule.", show_default="0.8"),
    ] = None,
    epsilon: opt.Epsilon = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="The exit code is about the population, with this confidence.",
            show_default="0.95, and the exit code is about the rows",
        ),
    ] = None,
    attributes: opt.AttributesMode = opt.Attributes.crossed,
    weight: opt.Weight = None,
    bins: opt.Bins = None,
    missing_groups: opt.MissingGroups = opt.Missing.error,
    min_group_size: opt.MinAnsweredRows = 30,
    na: opt.Na = None,
    keep_na: opt.KeepNa = None,
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare groups in a table of answers: sizes, rates with 95% intervals, ratios, the
    four-fifths rule, and whether it holds in the population.

    With --label and --prediction all rates are given. With --label alone the data themselves are
    audited: how often each group has the favourable label, and how strongly group and label go
    together. The verdicts are about the smallest selection rate over the largest. Exit code 2 if
    that ratio is below --tau, or cannot be judged. With --confidence 0.95 the exit code says what
    these rows prove of the population they were drawn from: 0 the ratio is at least --tau, 2 it is
    below, 3 that cannot be told from these rows. With --epsilon differences between the largest and
    the smallest rate take the place of ratios; they must be at most as large.
    """
    with plain_errors("Nothing was written."):
        from evenhand.statistics.verdicts import CONFIDENCE, FAILS, HOLDS
        from evenhand.workflow.attributes import audit_attributes

        if None not in (tau, epsilon):
            raise InputError("one_comparison", tau=Parameter("tau"), epsilon=Parameter("epsilon"))
        goal = opt.parse_target(0.8 if tau is None else tau)
        if epsilon is not None:
            goal = 0.0 - opt.parse_difference(epsilon)
        summary = audit_attributes(
            read_file(file, delimiter, encoding),
            label=label,
            prediction=prediction,
            sensitive=sensitive,
            attributes=attributes.value,
            favourable=favourable,
            favourable_label=favourable_label,
            privileged=privileged,
            weight=weight,
            missing_groups=missing_groups.value,
            bins=opt.parse_bins(bins),
            na=na,
            keep_na=keep_na or [],
            tau=goal,
            comparison="ratio" if epsilon is None else "difference",
            min_group_size=min_group_size,
            confidence=CONFIDENCE if confidence is None else confidence,
        )
    show(as_json, summary, lambda view: view.show_audit(summary))
    found = {HOLDS: True, FAILS: False}.get(summary["verdict"]["population"])
    finish(summary["passed"] if confidence is None else found)


@command(
    "evenhand compare loans.csv --label repaid --sensitive sex",
    "evenhand compare loans.csv --label repaid --sensitive sex --method zafar",
    "evenhand compare new.csv --label repaid --sensitive sex --model loans.model",
    "evenhand compare loans.csv --label repaid --sensitive sex --epsilon 0.05",
)
def compare(
    file: opt.File,
    label: opt.Label,
    sensitive: opt.Sensitive,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to compare; may be repeated.", show_default="those that are quick"
        ),
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(help="Saved model to compare with them as it is; may be repeated."),
    ] = None,
    tau: Annotated[
        list[float] | None,
        typer.Option(help="Least ratio; may be repeated.", show_default="0.8 0.9"),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="Largest difference, in place of --tau; may be repeated."),
    ] = None,
    attributes: opt.AttributesMode = opt.Attributes.crossed,
    notion: Annotated[
        str, typer.Option(help="Which rate the groups shall share.")
    ] = "statistical_parity",
    favourable: opt.FavourableOne = None,
    splits: Annotated[int, typer.Option(min=1, help="Random splits.")] = 3,
    jobs: Annotated[int, typer.Option(help="Splits at a time; -1: one for each core.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV of every split.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits.")] = 0,
    weight: opt.Weight = None,
    exclude: opt.Exclude = None,
    bins: opt.Bins = None,
    missing_groups: opt.MissingGroups = opt.Missing.error,
    min_group_size: opt.MinTestRows = 30,
    na: opt.Na = None,
    keep_na: opt.KeepNa = None,
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    r"""Compare evenhand with other methods on a table: the same splits, every method chosen for the
    target on the training part, figures on test data. A saved --model is not fitted: give rows that
    it was not fitted to, or its figures are too good.

    Methods of other packages need pip install '.\[peers]' in a clone; what is not installed is
    reported and left out.
    """
    with plain_errors():
        from evenhand.workflow.compare import compare_methods

        if out is not None:
            check_writable(out, file)
        opt.check_jobs(jobs)
        table = compare_methods(
            read_file(file, delimiter, encoding),
            label=label,
            sensitive=sensitive,
            methods=method,
            models=model or [],
            taus=[opt.parse_target(t) for t in tau or []] or None,
            epsilons=[opt.parse_difference(e) for e in epsilon or []] or None,
            attributes=attributes.value,
            notion=notion,
            favourable=favourable,
            splits=splits,
            jobs=jobs,
            seed=seed,
            weight=weight,
            missing_groups=missing_groups.value,
            bins=opt.parse_bins(bins),
            exclude=exclude or [],
            min_group_size=min_group_size,
            na=na,
            keep_na=keep_na or [],
            verbose=0 if as_json or not sys.stderr.isatty() else 1,
            spell=spell,
        )
        if out is not None:
            write_table(out, table)

    def screen(view: Any) -> None:
        view.show_comparison(table)
        if out is not None:
            view.say_written([out])

    show(as_json, table.to_json(orient="records"), screen)


@command("evenhand datasets", "evenhand datasets german -o loans.csv")
def datasets(
    name: Annotated[str | None, typer.Argument(help="A dataset to write as a CSV.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV to write; - is standard output.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """List the datasets that come with evenhand or that it can fetch, or write one as a CSV to try
    things on.
    """
    with plain_errors():
        from evenhand.tables.write import write_chunks
        from evenhand.workflow.compare import check_dataset, dataset_frame, dataset_list

        records = dataset_list()
        if name is None:
            show(as_json, records, lambda view: view.show_datasets(records))
            return
        check_dataset(name)
        if out is None:
            raise InputError("no_output", name=name)
        if str(out) == "-":
            frame = dataset_frame(name)
            with printed():
                write_chunks([frame], sys.stdout.buffer, "-")
            return
        check_writable(out)
        frame = dataset_frame(name)
        write_table(out, frame)
    about = {"out": str(out), "rows": len(frame)}
    show(as_json, about, lambda view: typer.echo(f"{len(frame):,} rows: {out}"))
