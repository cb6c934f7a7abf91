"""The command ``train``."""

import re
import sys
from collections.abc import Callable
from inspect import Parameter as Option
from inspect import Signature, signature
from pathlib import Path
from typing import Any

from evenhand._atomic import write_atomically
from evenhand._extras import import_extra
from evenhand.cli import options as opt
from evenhand.cli.files import VERDICTS, caught_warnings, check_writable, read_file, title_of
from evenhand.cli.shell import Command, command, command_line, finish, plain_errors, reached, show
from evenhand.cli.wording import spell
from evenhand.core.errors import InputError, Parameter, sentences

# What --dask means without an address.
HERE = "here"

_ADDRESS = re.compile(r"[\w+.-]+://\S+|[\w.-]+:\d+")


class _DaskCommand(Command):
    """A command whose --dask may have an address behind it, or none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the value that a bare --dask stands for."""
        filled = []
        for i, word in enumerate(args):
            after = args[i + 1] if i + 1 < len(args) else ""
            bare = word == "--dask" and not _ADDRESS.fullmatch(after) and after != HERE
            filled += [word, HERE] if bare else [word]
        return super().parse_args(ctx, filled)


@command(
    "evenhand train loans.csv --label repaid --sensitive sex -o loans.model",
    "evenhand train --demo adult -o adult.model",
    "evenhand train loans.csv --label repaid --sensitive sex --confidence certified",
    "evenhand train 'data/*.parquet' --label repaid --sensitive sex --dask",
    cls=_DaskCommand,
)
def train(
    file: opt.FileOrNone = None,
    label: opt.LabelOrNone = None,
    sensitive: opt.SensitiveOrNone = None,
    tau: opt.Taus = None,
    epsilon: opt.Epsilons = None,
    notion: opt.Notions = None,
    objective: opt.Objective = None,
    cost_fp: opt.CostFp = None,
    cost_fn: opt.CostFn = None,
    profit_tp: opt.ProfitTp = None,
    profit_tn: opt.ProfitTn = None,
    favourable: opt.Favourable = None,
    test: opt.TestFile = None,
    test_size: opt.TestSize = None,
    confidence: opt.Confidence = "0.9",
    selection: opt.SelectionRows = opt.Selection.train,
    delta: opt.Delta = None,
    attributes: opt.AttributesMode = opt.Attributes.crossed,
    group_cuts: opt.GroupCuts = False,
    boosted: opt.Boosted = False,
    scores: opt.HiddenScores = None,
    sensitive_inputs: opt.SensitiveInputs = False,
    exclude: opt.Exclude = None,
    person: opt.Person = None,
    weight: opt.Weight = None,
    survey_weights: opt.SurveyWeights = False,
    kind: opt.Kinds = None,
    bins: opt.Bins = None,
    missing_groups: opt.MissingGroups = opt.Missing.error,
    min_group_size: opt.MinTrainingRows = 30,
    na: opt.Na = None,
    keep_na: opt.KeepNa = None,
    demo: opt.Demo = None,
    dask: opt.Dask = None,
    out: opt.Out = Path("evenhand.model"),
    report: opt.Report = None,
    no_report: opt.NoReport = False,
    seed: opt.Seed = 0,
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    as_json: opt.AsJson = False,
) -> None:
    """Train a fair classifier on a table and write it, with a report, to files.

    A part of the table is held back as a test. The screen shows what was found in the columns and
    the chosen point beside plain logistic regression. Exit code 2 if the target was not reached
    where the point was chosen; the model is written all the same.

    With --dask FILE is a Parquet file, a folder of them or a quoted pattern, and the rows stay with
    Dask's workers.
    """
    with plain_errors():
        from evenhand.workflow.settings import TrainSettings

        page = _page(out, report, no_report)
        _check_places(out, page, file, test)
        share = _share(test, test_size)
        roles = _roles(file, demo, dask, label, sensitive, favourable)
        source = file, demo, delimiter, encoding
        table = _table(*source) if dask is None else _chunks(out, test, *source)
        taus = opt.parse_targets(tau, opt.parse_target)
        epsilons = opt.parse_targets(epsilon, opt.parse_difference)
        notions = notion or ["statistical_parity"]
        if (tau or epsilon) and taus is None and epsilons is None:
            about = {"tau": Parameter("tau"), "epsilon": Parameter("epsilon")}
            raise InputError("no_target", notion=" and ".join(notions), **about)
        outcomes = {"cost_fp": cost_fp, "cost_fn": cost_fn}
        outcomes |= {"profit_tp": profit_tp, "profit_tn": profit_tn}
        early: list[str] = []

        def show_early() -> None:
            """Say what was seen in the columns while the user can still do otherwise."""
            from evenhand.views import terminal

            early.extend(sentences(caught, spell))
            terminal.say_notes(early)

        with caught_warnings() as caught:
            settings = TrainSettings.of(
                **roles,
                title=demo if demo is not None else title_of(file),
                test_size=share,
                missing_groups=missing_groups.value,
                sensitive_inputs=sensitive_inputs,
                exclude=exclude or [],
                person=person,
                weight=weight,
                survey_weights=_survey(weight, survey_weights),
                kinds=opt.parse_kinds(kind or []),
                na=na,
                keep_na=keep_na or [],
                command=command_line(),
                seed=seed,
                tau=taus,
                epsilon=epsilons,
                notion=notions[0] if len(notions) == 1 else notions,
                objective=opt.parse_objective(objective, **outcomes),
                confidence=opt.parse_confidence(confidence),
                selection=selection.value,
                **_delta(delta, confidence),
                attributes=attributes.value,
                group_cuts=group_cuts,
                boosted=boosted,
                scores=scores,
                bins=opt.parse_bins(bins),
                min_group_size=min_group_size,
                **_progress(boosted or scores, as_json),
            )
            rows = None if test is None else read_file(test, delimiter, encoding)
            saved = _fit(table, settings, dask, rows, None if as_json else show_early)
        summary = _write(saved, out, page)
    _show(as_json, summary, [out, page], caught, early)
    finish(reached(summary))


def _options_of(function: Any, *without: str, **needed: Any) -> Callable[[Any], Any]:
    """Give a command the options of another one, but for some, with some that it needs."""
    given = signature(function).parameters
    first = [Option(name, Option.KEYWORD_ONLY, annotation=a) for name, a in needed.items()]
    left_out = {*without, *needed}
    others = [p.replace(kind=p.KEYWORD_ONLY) for name, p in given.items() if name not in left_out]

    def mark(command: Any) -> Any:
        command.__signature__ = Signature([*first, *others])
        return command

    return mark


@command(
    "evenhand adjust loans.csv --scores score --label repaid --sensitive sex",
    "evenhand adjust new.csv --scores p --label paid --sensitive sex --group-cuts",
)
@_options_of(
    train,
    *("demo", "dask", "boosted", "sensitive_inputs"),
    file=opt.File,
    scores=opt.Scores,
    label=opt.Label,
    sensitive=opt.Sensitive,
)
def adjust(**options: Any) -> None:
    """Adjust a model there is already, by its scores in a column, and write what comes of it.

    FILE has rows that the model had not seen when it was made, with its score, the label, the
    sensitive column and, if there are any, other columns from which the group is estimated; answers
    go by these and the score, and with --group-cuts by the score and the group. What train says of
    its part held back, its files and its exit codes is true here as well. Then predict takes a
    table with the same columns.
    """
    train(**options)


def _progress(trees: Any, as_json: bool) -> dict[str, int]:
    """Say whether a linear fit shows how far it is."""
    return {} if trees else {"verbose": int(not as_json and sys.stderr.isatty())}


def _show(
    as_json: bool, summary: dict[str, Any], files: list[Path | None], caught: Any, early: list[str]
) -> None:
    """Show a training, with the notes that were not shown before it."""
    model, page = (None if path is None else str(path) for path in files)
    about = {"favourable_answer": summary["favourable_answer"], "model": model, "report": page}

    def screen(view: Any) -> None:
        later = sentences(caught, spell, without=VERDICTS)
        view.show_training(summary, [note for note in later if note not in early])
        view.say_written([path for path in files if path is not None])

    show(as_json, about | {"notes": sentences(caught, spell)} | summary, screen)


def _page(out: Path, report: Path | None, no_report: bool) -> Path | None:
    """Give the place of the report, if one is wanted."""
    return None if no_report else report or out.with_name(f"{out.stem}.html")


def _check_places(out: Path, page: Path | None, *inputs: str | None) -> None:
    """Refuse places of model and report that cannot be written to, or are one."""
    check_writable(out, *inputs)
    if page is not None:
        check_writable(page, *inputs)
        if page.resolve() == out.resolve():
            raise InputError("same_output", path=out)


def _share(test: str | None, test_size: float | None) -> float:
    """Give the share of the rows that is held back."""
    if test is not None and test_size is not None:
        raise InputError("two_tests")
    share = 0.3 if test_size is None else test_size
    if not 0 <= share < 1:
        raise InputError("bad_test_size", value=share)
    return share


def _delta(delta: float | None, confidence: str) -> dict[str, float]:
    """Refuse the error of a certificate where none is asked for."""
    if delta is None:
        return {}
    if opt.parse_confidence(confidence) != "certified":
        certified = Parameter("confidence", "certified")
        raise InputError("delta_without_certificate", certified=certified, delta=Parameter("delta"))
    return {"delta": delta}


def _survey(weight: str | None, survey_weights: bool) -> bool:
    """Refuse to say what weights mean where there are none."""
    if survey_weights and weight is None:
        raise InputError("no_survey_weights")
    return survey_weights


def _roles(
    file: str | None,
    demo: str | None,
    dask: str | None,
    label: str | None,
    sensitive: list[str] | None,
    favourable: str | None,
) -> dict[str, Any]:
    """Say what the columns are for; refuse a table whose label or groups are not named."""
    if dask is None and (file is None) == (demo is None):
        raise InputError("no_table")
    if dask is None and demo is not None:
        label, sensitive, favourable = demo_table(demo, label, sensitive, favourable)
    if label is None or not sensitive:
        raise InputError("no_columns")
    return {"label": label, "sensitive": sensitive, "favourable": favourable}


def _table(file: str | None, demo: str | None, delimiter: str | None, encoding: str | None) -> Any:
    """Read the table, or take a dataset inside the package."""
    from evenhand.tables.columns import as_table
    from evenhand.workflow.compare import dataset_frame

    # Only the table has the frame, so that train can free its memory.
    return as_table(
        read_file(str(file), delimiter, encoding) if demo is None else dataset_frame(demo)
    )


def _chunks(
    out: Path,
    test: str | None,
    file: str | None,
    demo: str | None,
    delimiter: str | None,
    encoding: str | None,
) -> list[Any]:
    """Find the chunks of the table that train works on with Dask; refuse what is for others."""
    others = {"--demo": demo, "--test": test, "--delimiter": delimiter, "--encoding": encoding}
    for option, value in others.items():
        if value is not None:
            instead = "; --test-size holds back a share of FILE" if option == "--test" else ""
            raise InputError("not_with_dask", option=option, instead=instead)
    if file is None or file == "-":
        raise InputError("dask_needs_files")
    for module in ("pyarrow", "dask", "distributed"):
        import_extra(module, "dask")
    from evenhand.workflow.dask_chunks import find_chunks

    chunks = find_chunks(file)
    for chunk in chunks:
        check_writable(out, chunk.path)
    return chunks


def _fit(table: Any, settings: Any, dask: str | None, test: Any, before_fit: Any) -> Any:
    """Train on a table, or on its chunks where Dask's workers are."""
    if dask is None:
        from evenhand.workflow.train import train_table

        return train_table(table, settings, test=test, before_fit=before_fit)
    if settings.boosted:
        instead = "; boosting needs the table in memory"
        raise InputError("not_with_dask", option="--boosted", instead=instead)
    from evenhand.workflow.dask_chunks import dask_client
    from evenhand.workflow.train_dask import train_chunks

    with dask_client(None if dask == HERE else dask, most=len(table)):
        return train_chunks(table, settings, before_fit)


def _write(saved: Any, out: Path, page: Path | None) -> dict[str, Any]:
    """Write model and report together, and give the summary that both are of."""
    from evenhand.persist.model_file import model_writer
    from evenhand.views.report import render
    from evenhand.workflow.summary import summarise

    summary = summarise(saved, spell)
    text = render(summary).encode()
    files = [] if page is None else [(page, lambda handle: handle.write(text))]
    write_atomically(out, model_writer(saved.model, facts=saved.facts), *files)
    return summary


def demo_table(
    demo: str, label: str | None, sensitive: list[str] | None, favourable: str | None
) -> tuple[str, list[str], str | None]:
    """Fill in what is known of a dataset inside the package."""
    from evenhand.datasets import DATASETS
    from evenhand.workflow.compare import INSIDE

    if demo not in INSIDE:
        raise InputError("unknown_demo", value=demo, known=" or ".join(INSIDE))
    record = DATASETS[demo]
    label = label or record.label
    own = str(record.favourable) if label == record.label else None
    return label, sensitive or [record.sensitive[0].name], favourable or own
