"""The sentences of a report that are the same in every report."""

from typing import Any

# Sentences of what moves with the slider, filled by Python and by the page's script alike.
PHRASES = {
    "rows": "{n} {part}",
    "saved": "This is the saved model, chosen for the target {saved}.",
    "moved": "Only a look at {target}. The saved model stays at {saved}.",
    "reached": "a model of this fit reaches {target}{sure}",
    "own.reached": "chosen for {target}, which it reaches {where}{sure}",
    "own.missed": "chosen for {target}, which it does not reach {where}{sure}",
    "off": "The shown model is {under} this chart shows ({value}).",
    "missed": "no model of this fit reaches {target}{sure}; the nearest is shown",
    "relied": "; {reach} or {better} can be relied on",
    # The bare value among some rows is not the verdict, which may ask for more.
    "verdict.ok": "reaches the target of {target} on these rows",
    "verdict.below": "{missed} the target of {target} on these rows",
    "verdict.none": "cannot be computed",
    "cost.less": "{points} {lost} than {plain}",
    "cost.more": "{points} {gained} than {plain}, {best} more than at its {top} cut",
    "cost.cut": "{points} {gained} than {plain} at its usual cut, but not than at its {top} one",
    "cost.unknown": "{points} {gained} than {plain} at its usual cut, which need not be its {top} "
    "one",
    "cost.none": "{alike} {plain}",
    "span": "{low}–{high}%",
    "of": "{top} of {bottom}",
    "floor": "Dashed line: beside the highest rate, the target asks every other group for at least "
    "{rate}.",
    "extremes": "Lowest: “{low}” with {lowest}. Highest: “{high}” with {highest}.",
    "alt": "{group}: before {before}, after {after}",
    "spoken": "Target {target}: {verdict}. On {part}: {name} {ratio}, {worth} {value}.",
    "spoken.fitted": "Target {target}: {verdict}. {Name} {ratio}, {worth} {value}.",
    "empty": "There is no model to choose from.",
}

PART_WORDS = {"train": "training rows", "held_out": "held-out rows", "test": "test rows"}


def part_words(part: dict[str, Any]) -> str:
    """Name the rows of a part."""
    rows = PART_WORDS.get(part["key"])
    return part["title"] if rows is None or part["weighted"] else rows


# What is promised, by how the point was chosen.
PROMISES = {
    "train": "The model was chosen on the rows it was fitted to. On new rows its {name} is often "
    "worse: go by rows that it has not seen.",
    "left_out": "The model was chosen on the rows it was fitted to, each as if it had been left "
    "out. On new rows its {name} will be {passed} the target about as often as {missed} it.",
    "holdout": "The model was chosen on rows set aside before the fit. On new rows its {name} will "
    "be {passed} the target about as often as {missed} it.",
    "crossfit": "The model was chosen on predictions for rows that each fit had not seen. On new "
    "rows its {name} will be {passed} the target about as often as {missed} it.",
    "confident": "The model was chosen so that its {name} in the population these rows were drawn "
    "from reaches the target with a probability of about {sure}. Test rows are a sample "
    "themselves: among them the {name} can be {missed} the target although it is {passed} it in "
    "the population.",
    "unsure": "No model of this fit reaches the target in the population with a probability of "
    "about {sure}, so the one that comes nearest was kept. With that probability its {name} in the "
    "population is {bound} or {better}, which misses the target.",
    "certified": "The model was chosen by a test on rows set aside before the fit, so that its "
    "{name} in the population these rows were drawn from can be promised.",
    "uncertified": "A test on rows set aside before the fit could not show that a model of this "
    "fit reaches the target, so the fairest was kept. Nothing is known of its {name} on new rows "
    "but what the figures here show.",
}

# What the probability leaves out, where it was computed from the rows fitted to.
TOO_SURE = {
    "columns": " Here the probability can be lower: there are so many inputs for so few training "
    "rows that the model looks fairer on these than it is on others.",
    "boosted": " Here the probability can be lower: a new row is answered by the mean of several "
    "models, and with few rows, rare answers or more than two of them its rates are not quite "
    "those that the model was chosen by.",
}

# What figures of the training rows are, where that is not plain.
TRAINING_FIGURES = {
    "left_out": "Figures of the training rows by groups are of the rows as they were fitted to, "
    "where the model looks fairer and more accurate than it is. Those with each row as if left out "
    "are nearer to what new rows will show.",
    "crossfit": "Figures of the training rows by groups are of the rows as they were fitted to, "
    "where the model looks fairer and more accurate than it is. Those out of fold are nearer to "
    "what new rows will show.",
    "holdout": "Figures of the training rows by groups are mostly of rows as they were fitted to, "
    "where the model looks fairer and more accurate than it is. Those on the held-out rows alone "
    "are nearer to what new rows will show.",
    "boosted": "Figures of training rows are by models that had not seen them. To predict the same "
    "rows again gives others, which look better, as most of the models have seen them.",
    # What is said besides of scores that had not seen the rows.
    "cuts crossfit": " But the cuts were chosen on these very rows: figures out of fold are nearer "
    "to what new rows will show.",
    "cuts holdout": " But the cuts were found on most of these rows: figures on the held-out rows "
    "alone are nearer to what new rows will show.",
}

SELECTION_WORDS = {
    "train": "on the rows fitted to",
    "left_out": "on the rows fitted to (each as if left out)",
    "holdout": "on held-out rows",
    "crossfit": "out of fold",
}

# At other targets than the one that was asked for.
SLIDER_PROMISES = {
    "train": "",
    "left_out": "",
    "holdout": "",
    "crossfit": "",
    "confident": "The probability holds for one target that was named beforehand. If several are "
    "tried and the best is kept, it is lower.",
    "certified": "The promise is for {tau} only: a certificate needs its target named beforehand.",
}
SLIDER_PROMISES |= {
    "unsure": SLIDER_PROMISES["confident"],
    "uncertified": "A certificate needs its target named beforehand.",
}

# What a weight does, of two answers and of many.
WEIGHTS_OF_TWO = (
    "A weight right of zero speaks for the answer in the heading, left of zero against it; near "
    "zero the input hardly counts."
)
WEIGHTS_OF_MANY = (
    "Each answer has its own weights and its own score, and the answer whose score is largest is "
    "given. A weight right of zero raises the score of the answer in the heading, before it is "
    "compared with the others: an input that raises another answer's score by more makes this "
    "answer rarer all the same."
)

# What the comparison does not say: a heading and a sentence each.
SMALL_GROUPS, WEIGHTED_ROWS = "Small groups were not compared.", "Weighted rows."
LIMITS = {
    "Alike is not right.": "Rates that are alike say that the groups get this answer about equally "
    "often. They do not say that the answers are right, or that two similar people get the same "
    "one.",
    "One measure.": "Only the {rates} held level. Other rates can differ between the same groups; "
    "when the groups differ in the true answers, not all can be level at once.",
    "These groups only.": "Rows were compared by {by}. Nothing here speaks of other attributes, or "
    "of smaller groups inside these.",
    SMALL_GROUPS: "{small} too small for a rate that means anything. The model decides about them "
    "all the same.",
    "The table is taken at its word.": "Accuracy compares with the answers in the table. If those "
    "carry old unfairness or mistakes, a model that repeats them counts as accurate.",
    "Rows like these.": "All figures are for rows drawn like the ones in the table. Other places, "
    "later years or other applicants can differ, and intervals do not cover that.",
    "Not a legal opinion.": "The four-fifths rule is a rule of thumb for noticing trouble. "
    "Reaching it does not make a decision lawful, and missing it does not make it unlawful.",
    WEIGHTED_ROWS: "Where rows have weights, rates are of weights and no intervals are shown.",
}
