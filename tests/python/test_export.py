"""stint.export against PyTorch's own training."""
import unittest

import numpy as np
import stint_train as stint
import torch
from torch import nn

PORTABLE = {"portable": True, "threads": 1}


class Net(nn.Module):
    """Batch norm, a tie, something frozen."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.first, self.second = nn.Linear(144, 16), nn.Linear(16, 16, bias=False)
        self.tied, self.head = nn.Linear(16, 16), nn.Linear(16, 10)
        self.tied.weight = self.second.weight
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        x = self.first(torch.relu(self.bn(self.conv(x))).flatten(1))
        return self.head(self.tied(torch.relu(self.second(x))))


class Export(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_trains_as_torch(self):
        module, x, y = Net().eval(), torch.randn(8, 1, 8, 8), torch.randint(0, 10, (8,))
        step = stint.export(module, x[:4], loss="cross-entropy", optimizer="sgd:lr=0.1", batch=8, **PORTABLE)
        self.assertFalse(module.training)
        module.train()
        parameters = [p for p in module.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(3):
            loss = nn.functional.cross_entropy(module(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.assertAlmostEqual(step.train(x, y), loss.item(), 5)
        self.assertEqual(set(step.parameters()), {name for name, _ in module.named_parameters(remove_duplicate=False)})
        trained = {**step.parameters(), **step.buffers()}
        for name, value in trained.items():
            np.testing.assert_allclose(value, module.state_dict()[name].numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
        # and back into the module
        other = Net()
        other.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in trained.items()}, strict=False)
        with torch.no_grad():
            want = other.eval()(x)
        np.testing.assert_allclose(next(iter(step.predict(x).values())), want, rtol=1e-4, atol=1e-5)

    def test_what_is_lost_is_told(self):
        class Unused(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = nn.Linear(4, 2), nn.Linear(3, 3)

            def forward(self, x):
                return self.used(x)

        given = {"loss": "mse", "optimizer": "sgd:lr=0.1", **PORTABLE}
        with self.assertRaises(stint.ExportError) as e:
            stint.export(Unused(), torch.randn(1, 4), **given)
        self.assertEqual(e.exception.names, ("unused.weight", "unused.bias"))
        with self.assertWarnsRegex(stint.StintWarning, "unused.weight"):
            step = stint.export(Unused(), torch.randn(1, 4), strict=False, **given)
        self.assertEqual(step.inputs["x"].shape, (1, 4))


if __name__ == "__main__":
    unittest.main()
