"""Splits of training parts, on which settings are chosen without a look at test rows."""

from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Bunch

from evenhand.datasets import encoded_split


def inner_split(part, seed):
    """Split the training part of a split once more, its rows encoded already."""
    training = Bunch(
        data=part.X_train,
        target=part.y_train,
        sensitive_features=part.z_train,
        encoder=FunctionTransformer(),
    )
    return encoded_split(training, random_state=1000 + seed)
