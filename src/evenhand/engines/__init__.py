"""Where rows are and how sums over them are found: in memory, on a device, in files, on a cluster.

An engine is a :class:`Rows`: it applies a function to blocks of rows and joins the results. The
mathematics is in :mod:`evenhand.rowmath` and the same for all.
"""

from evenhand.engines._parts import Coding, Facts, check_columns, check_numbers, column_sizes
from evenhand.engines._rows import (
    BLOCK_ROWS,
    COMPILED_ROWS,
    MemoryRows,
    Rows,
    Share,
    as_columns,
    canonical,
    cores,
    share_cells,
)

__all__ = [
    "BLOCK_ROWS",
    "COMPILED_ROWS",
    "Coding",
    "Facts",
    "MemoryRows",
    "Rows",
    "Share",
    "as_columns",
    "canonical",
    "check_columns",
    "check_numbers",
    "column_sizes",
    "cores",
    "share_cells",
]
