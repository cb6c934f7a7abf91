"""Rows in tensors: the same moments and fits as in memory."""

import itertools
import sys
import warnings

import numpy as np
import pytest
from helpers import (
    MANY,
    NOTION_NAMES,
    REGIMES,
    assert_same_moments,
    fair,
    make_rows,
    raises,
    with_value,
)
from sklearn.model_selection import KFold

from evenhand import FairClassifier, FairnessWarning
from evenhand.core.errors import Parameter
from evenhand.core.notions import NOTIONS, find_notion, of_labels
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import row_sums
from evenhand.core.rows import as_columns
from evenhand.engines.kernels import find_faster
from evenhand.engines.memory import MemoryRows


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        torch = pytest.importorskip("torch")
        torch.set_num_threads(1)  # its threads wait busily, and so do those of other tests
        return torch

    @pytest.fixture(params=["cpu", "cuda"])
    def device(self, torch, request):
        if request.param == "cuda" and not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        return request.param

    @pytest.mark.parametrize("labels", [2, 3])
    @pytest.mark.parametrize("notion", NOTION_NAMES)
    def test_moments(self, torch, device, notion, labels, point):
        from evenhand.engines.torch import TorchRows

        X, y, z = make_rows(groups=3, labels=labels)
        rng = np.random.default_rng(1)
        wanted = find_notion(notion, 2)
        wanted = wanted if labels == 2 else of_labels(wanted, [0, 2], 3)
        for k, quantity, weight in itertools.product(
            (2, 3), (None, rng.standard_normal(len(y))), (None, rng.random(len(y)) + 0.1)
        ):
            settings = {"notion": wanted, "n_labels": labels, "n_groups": k}
            columns = as_columns(
                len(y),
                y,
                np.minimum(z, k),
                n_labels=labels,
                quantity=quantity,
                sample_weight=weight,
            )
            given = quantity is not None
            numpy = Oracle(MemoryRows(X, columns), quantity=given, **settings)
            w, u = point(numpy)
            expected = numpy.evaluate(w, u, 1.3)
            for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
                rows = TorchRows(torch.as_tensor(X).to(dtype), columns, device)
                found = Oracle(rows, quantity=given, **settings)
                assert found.smoothness == pytest.approx(numpy.smoothness, rel=1e-5)
                assert_same_moments(found.evaluate(w, u, 1.3), expected, tolerance)

    @pytest.mark.parametrize("notion", ["statistical_parity", "predictive_equality"])
    @pytest.mark.parametrize("degree", [1, 2, 3])
    def test_the_fused_kernel(self, torch, notion, degree, point):
        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        from evenhand.engines.torch import TorchRows

        X, y, z = make_rows(200_003, groups=3)
        rng = np.random.default_rng(1)
        extras, weights = (None, rng.random(len(y))), (None, rng.random(len(y)) + 0.1)
        for extra, weight in itertools.product(extras, weights):
            columns = as_columns(len(y), y, z, n_labels=2, extra=extra, sample_weight=weight)
            expected = Oracle(MemoryRows(X, columns), notion=NOTIONS[notion](degree), n_groups=2)
            w, u = point(expected)
            for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
                rows = TorchRows(torch.as_tensor(X).to(dtype), columns, "cuda")
                found = Oracle(rows, notion=NOTIONS[notion](degree), n_groups=2)
                kernel = find_faster(row_sums, "torch", rows, w, u, 1.3, found.game, None)
                assert (kernel is not None) == (degree < 3)
                assert_same_moments(
                    found.evaluate(w, u, 1.3), expected.evaluate(w, u, 1.3), tolerance
                )

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"group_cuts": True},
            {"notion": "equalized_odds"},
            {"solver": "cost_sensitive"},
            {"cut": False},
        ],
    )
    @pytest.mark.parametrize("exact", [True, False])
    def test_fits(self, torch, device, settings, exact):
        X, y, z = make_rows(3000 if exact else MANY)
        settings = {"max_iter": 30, "tau": 0.7, **settings}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            expected = fair(**settings).fit(X, y, sensitive_features=z)
            tensors = [torch.as_tensor(v).to(device) for v in (X, y, z)]
            found = fair(**settings).fit(*tensors[:2], sensitive_features=tensors[2])
            copied = fair(**settings, engine="torch", device=device)
            copied.fit(X, y, sensitive_features=z)
        for model in (found, copied):
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
            np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
            assert model.rate_ == pytest.approx(expected.rate_)
            np.testing.assert_allclose(model.frontier_.rate, expected.frontier_.rate)
        groups = {"sensitive_features": tensors[2]} if settings.get("group_cuts") else {}
        predicted = found.predict(tensors[0], **groups)
        assert (predicted == expected.predict(X, sensitive_features=z)).mean() > 0.9999

    @pytest.mark.parametrize("exact", [True, False])
    def test_weights(self, torch, exact):
        # Rows of weight 0 do not count.
        X, y, z = make_rows(12_000 if exact else 2 * MANY)
        weight = np.random.default_rng(0).integers(0, 3, len(y))
        settings = {"max_iter": 20, "tau": 0.5}
        expected = fair(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = fair(**settings).fit(
            *map(torch.as_tensor, (X, y)),
            sensitive_features=torch.as_tensor(z),
            sample_weight=torch.as_tensor(weight),
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)

    def test_certificates(self, torch):
        from evenhand.paper.theory import certificate

        X, y, z = make_rows(600)
        found = [
            certificate(
                fair(max_iter=10, tau=0.5, engine=engine).fit(X, y, sensitive_features=z),
                X,
                y,
                sensitive_features=z,
            )
            for engine in ("numpy", "torch")
        ]
        assert found[1].epsilon == pytest.approx(found[0].epsilon, rel=1e-6)

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections(self, torch, selection):
        X, y, z = make_rows(6000)
        model = fair(**REGIMES[selection], tau=0.5, max_iter=20, cv=3, random_state=0)
        model.fit(torch.as_tensor(X), torch.as_tensor(y), sensitive_features=z)
        assert model.feasible_
        assert model.held_out_.n_rows == pytest.approx(
            6000 if selection == "crossfit" else 3000, rel=0.1
        )

    def test_labels_and_groups_of_any_kind(self, torch):
        X, y, z = make_rows(500)
        words, names = np.array(["no", "yes"])[y], np.array(["a", "b"])[z]
        model = fair(max_iter=5, tau=0.1, pos_label="yes").fit(
            torch.as_tensor(X), words, sensitive_features=names
        )
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.groups_.tolist() == ["a", "b"]
        assert set(model.predict(X)) <= {"no", "yes"}

    @pytest.mark.parametrize(
        ("change", "code", "data"),
        [
            (lambda X, y, z: (X[:, 0], y, z), "not_two_dimensions", {"n": 1}),
            (lambda X, y, z: (X[:0], y[:0], z[:0]), "empty_table", {"what": "rows"}),
            (lambda X, y, z: (X[:, :0], y, z), "empty_table", {"what": "columns"}),
            (lambda X, y, z: (X * np.nan, y, z), "inputs_not_finite", {"column": 0}),
            (lambda X, y, z: (X + 0j, y, z), "complex_inputs", {}),
            (
                lambda X, y, z: (X, y[:-1], z),
                "lengths_differ",
                {"argument": Parameter("y"), "n": 499, "expected": 500},
            ),
            (
                lambda X, y, z: (X, y, z[:-1]),
                "lengths_differ",
                {"argument": Parameter("sensitive_features"), "n": 499},
            ),
            (lambda X, y, z: (X, y * 0, z), "one_class", {"classes": "0"}),
            (lambda X, y, z: (X, y, z * 0), "number_of_groups", {"n": 1}),
            (
                lambda X, y, z: (X * 1e100, y, z),
                "inputs_too_large",
                {"column": 0, "dtype": "float64"},
            ),
        ],
    )
    def test_bad_input(self, torch, change, code, data):
        X, y, z = change(*(torch.as_tensor(v) for v in make_rows(500)))
        with raises(code, **data):
            FairClassifier().fit(X, y, sensitive_features=z)

    def test_without_labels_or_groups(self, torch):
        X, y, z = (torch.as_tensor(v) for v in make_rows(500))
        with pytest.raises(ValueError, match="requires y to be passed"):
            FairClassifier().fit(X, None, sensitive_features=z)
        with pytest.raises(ValueError, match="the groups are missing"):
            FairClassifier().fit(X, y)

    def test_what_is_missing_in_rows_that_do_not_count(self, torch):
        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        with raises("inputs_not_finite", column=1):
            FairClassifier().fit(
                torch.as_tensor(with_value(X, np.nan)),
                y,
                sensitive_features=z,
                sample_weight=weight,
            )

    @pytest.mark.parametrize("change", ["bfloat16", "half", "to_sparse", "to_sparse_csr"])
    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
    def test_tensors_that_numpy_does_not_have(self, torch, change):
        X, y, z = make_rows(500)
        X = np.round(X)  # so that all of them hold it
        settings = {"max_iter": 5, "tau": 0.1}
        given = getattr(torch.as_tensor(X), change)()
        expected = fair(**settings).fit(X, y, sensitive_features=z)
        model = fair(**settings).fit(given, torch.as_tensor(y), sensitive_features=z)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
        np.testing.assert_array_equal(model.predict(given), model.predict(X))

    def test_narrow_labels_groups_and_weights(self, torch):
        X, y, z = map(torch.as_tensor, make_rows(500))
        model = fair(max_iter=5, tau=0.1).fit(
            X,
            y.bfloat16(),
            sensitive_features=z.bfloat16(),
            sample_weight=torch.ones(500, dtype=torch.bfloat16),
        )
        assert model.classes_.tolist() == model.groups_.tolist() == [0, 1]

    @pytest.mark.parametrize("device", ["cuda:99", "nonsense", "meta"])
    @pytest.mark.parametrize("tensor", [True, False])
    def test_devices_that_are_not_there(self, torch, device, tensor):
        X, y, z = make_rows(100)
        model = FairClassifier(engine="torch", device=device)
        with raises("unusable_device", device=Parameter("device", device)):
            model.fit(torch.as_tensor(X) if tensor else X, y, sensitive_features=z)

    def test_splitters(self, torch):
        X, y, z = make_rows(500)
        settings = {
            "confidence": None,
            "selection": "crossfit",
            "cv": KFold(3),
            "max_iter": 5,
            "tau": 0.1,
        }
        expected = fair(**settings).fit(X, y, sensitive_features=z)
        model = fair(**settings).fit(torch.as_tensor(X), y, sensitive_features=z)
        np.testing.assert_allclose(model.held_out_.rate, expected.held_out_.rate)

    def test_arrays_that_cannot_be_written_to(self, torch, monkeypatch):
        """PyTorch warns of them once in a process; here it does each time."""
        as_tensor = torch.as_tensor

        def warned(values, **kwargs):
            if isinstance(values, np.ndarray) and not values.flags.writeable:
                warnings.warn("The given NumPy array is not writable, and", stacklevel=2)
            return as_tensor(values, **kwargs)

        monkeypatch.setattr(torch, "as_tensor", warned)
        X, y, z = make_rows(500)
        X.setflags(write=False)
        fair(max_iter=5, tau=0.1, engine="torch").fit(X, y, sensitive_features=z)

    def test_numpy_takes_tensors(self, torch, monkeypatch):
        from evenhand.engines import torch as torch_rows

        monkeypatch.setattr(torch_rows, "TorchRows", None)
        X, y, z = make_rows(500)
        settings = {"max_iter": 5, "tau": 0.1}
        expected = fair(**settings).fit(X, y, sensitive_features=z)
        model = fair(engine="numpy", **settings)
        model.fit(*map(torch.as_tensor, (X, y)), sensitive_features=torch.as_tensor(z))
        np.testing.assert_array_equal(model.coef_, expected.coef_)

    def test_score(self, torch, device):
        X, y, z = make_rows(500)
        weight = np.random.default_rng(0).random(500)
        model = fair(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
        tensors = [torch.as_tensor(v, dtype=torch.float64, device=device) for v in (X, y, weight)]
        found = model.score(*(v.requires_grad_() for v in tensors))
        assert found == pytest.approx(model.score(X, y, weight))
        assert model.score(X, y[:, None]) == model.score(X, y)
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.score(X, y[:-1])

    def test_another_number_of_columns(self, torch):
        X, y, z = make_rows(500)
        model = fair(max_iter=5, tau=0.1).fit(torch.as_tensor(X), y, sensitive_features=z)
        with pytest.raises(ValueError, match="features"):
            model.predict(torch.as_tensor(X[:, :3]))


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y, z = make_rows(100)
    with pytest.raises(ImportError, match=r"\.\[torch\]"):
        FairClassifier(engine="torch").fit(X, y, sensitive_features=z)
