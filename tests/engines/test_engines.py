"""What in-memory tables give, every engine gives as well."""

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, fair, make_rows, raises
from sklearn.base import clone


class TestLikeMemory:
    """What in-memory tables give, the engines give as well."""

    @pytest.fixture(params=["torch", "dask", "parquet"])
    def fit(self, request, tmp_path):
        """Fit an engine to arrays in memory."""
        pytest.importorskip("pyarrow" if request.param == "parquet" else request.param)

        def fit(model, X, y, z, weight=None):
            if request.param == "parquet":
                table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=z)
                table.assign(w=weight).to_parquet(tmp_path / "t.parquet", row_group_size=700)
                return model.fit_parquet(
                    tmp_path,
                    label="y",
                    sensitive_features="z",
                    columns=list("abcdef"),
                    sample_weight=None if weight is None else "w",
                )
            if request.param == "torch":
                torch = pytest.importorskip("torch")
                torch.set_num_threads(1)
                X = torch.as_tensor(X)
            else:
                X = pytest.importorskip("dask.array").from_array(X, chunks=(700, -1))
            return model.fit(X, y, sensitive_features=z, sample_weight=weight)

        return fit

    def test_certificates_with_weights_that_are_alike(self, fit):
        X, y, z = make_rows(2000)
        settings = {"confidence": "certified", "max_iter": 5, "tau": 0.3, "random_state": 0}
        plain = fit(fair(**settings), X, y, z)
        for one in (1, 0.3):
            weighted = fit(fair(**settings), X, y, z, np.full(2000, one))
            assert weighted.guarantee_.certified
            assert weighted.guarantee_ == plain.guarantee_
        tripled = fit(fair(**settings), X, y, z, np.full(2000, 3.0)).held_out_
        np.testing.assert_array_equal(tripled.counts.sum(axis=(1, 2, 3)), tripled.n_rows)
        with raises("certified_with_weights"):
            fit(fair(**settings), X, y, z, 1.0 + np.arange(2000) % 2)

    def test_only_certificates_have_bounds(self, fit):
        X, y, z = make_rows(2000)
        model = fair(**REGIMES["holdout"], max_iter=5, tau=0.1, random_state=0)
        assert np.isnan(fit(model, X, y, z).held_out_.bound).all()
        model = fair(**REGIMES["certified"], max_iter=5, tau=0.1, random_state=0)
        assert np.isfinite(fit(model, X, y, z).held_out_.bound).any()

    def test_types_of_labels_and_groups(self, fit, request):
        X, y, z = make_rows(2000)
        y, z = np.array(["no", "yes"])[y], np.array(["f", "m"])[z]
        model = fair(max_iter=5, tau=0.1, pos_label="yes")
        if "parquet" in request.node.name:
            y, z = pd.Series(y), pd.Series(z)  # as a file has them
        for labels in (y, y.astype(object)):
            expected = clone(model).fit(X, labels, sensitive_features=z)
            fit(model, X, labels, z)
            assert model.classes_.dtype == expected.classes_.dtype
            assert model.groups_.dtype == expected.groups_.dtype
