"""Pictures in the manner of scikit-learn's Display objects (extra ``plot``)."""

from evenhand.views.plots.comparison import ComparisonDisplay
from evenhand.views.plots.frontier import FrontierDisplay
from evenhand.views.plots.groups import GroupRatesDisplay
from evenhand.views.plots.trajectory import TrajectoryDisplay

__all__ = ["ComparisonDisplay", "FrontierDisplay", "GroupRatesDisplay", "TrajectoryDisplay"]
