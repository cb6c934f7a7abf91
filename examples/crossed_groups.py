"""Two sensitive columns crossed, one of them a number in bins."""

import sys

from sklearn.model_selection import train_test_split

from evenhand import GroupRatesDisplay, fair_pipeline
from evenhand.datasets import load_adult

people = load_adult().frame
train, test = train_test_split(people, test_size=0.3, random_state=0)
model = fair_pipeline(["sex", "age"], tau=0.5, bins={"age": [30, 45]}, pos_label=">50K")
model.fit(train.drop(columns="income"), train["income"])

groups = (
    test["sex"].astype(str)
    + ", "
    + test["age"].map(lambda age: "below 30" if age < 30 else "30 to 45" if age < 45 else "from 45")
)
display = GroupRatesDisplay.from_predictions(
    test["income"],
    {"label": test["income"], "evenhand": model.predict(test)},
    sensitive_features=groups,
    pos_label=">50K",
    tau=0.5,
)
display.figure_.savefig(sys.argv[1] if len(sys.argv) > 1 else "crossed_groups.png", dpi=110)
