"""stint.export against PyTorch's own training."""
import unittest
import warnings

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

    def like_torch(self, step, module, inputs, target, loss, optimizer, scheduler=None):
        """The step's training, compiled by these objects, is torch's own."""
        for _ in range(5):
            ours = step.train(inputs, target)
            value = loss(module(inputs), target)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            if scheduler:
                scheduler.step()
            self.assertAlmostEqual(ours, value.item(), 5)
        have = {**step.parameters(), **step.buffers()}
        for name, value in module.named_parameters():
            np.testing.assert_allclose(have[name], value.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name)

    def test_objects(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))

        def made():
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))

        stint.export(made(), x, loss="mse", optimizer="sgd", path="objects.onnx", **PORTABLE)
        reals, optim = torch.randn(8, 4), torch.optim
        # each loss, with one of the optimizers
        for loss, target, make in (
                (nn.CrossEntropyLoss(label_smoothing=0.1), y, lambda p: optim.AdamW(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)),
                (nn.CrossEntropyLoss(weight=torch.rand(4), ignore_index=int(y[0])), y, lambda p: optim.Adam(p, lr=0.01, amsgrad=True)),
                (nn.CrossEntropyLoss(reduction="sum"), y, lambda p: optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True)),
                (nn.MSELoss(), reals, lambda p: optim.Adam(p, weight_decay=0.1, decoupled_weight_decay=True)),
                (nn.HuberLoss(delta=0.5, reduction="sum"), reals, optim.Adagrad),
                (nn.SmoothL1Loss(beta=0.3), reals, optim.Adadelta),
                (nn.L1Loss(), reals, lambda p: optim.SGD(p, lr=0.01, maximize=True)),
                (nn.BCEWithLogitsLoss(pos_weight=torch.rand(4), weight=torch.rand(4)), torch.rand(8, 4), optim.Adamax),
                (nn.PoissonNLLLoss(log_input=True, full=True), torch.rand(8, 4), lambda p: optim.RMSprop(p, momentum=0.5, centered=True)),
                (nn.SoftMarginLoss(), torch.rand(8, 4).round() * 2 - 1, lambda p: optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True)),
                (nn.KLDivLoss(reduction="batchmean", log_target=True), reals, lambda p: optim.RAdam(p, lr=0.01)),
                (nn.HuberLoss(), reals, lambda p: optim.ASGD(p, lambd=0.1, t0=1)),
                (nn.MSELoss(reduction="sum"), reals, lambda p: optim.Adafactor(p, lr=0.02))):
            module = made()
            optimizer = make(module.parameters())
            with warnings.catch_warnings(), self.subTest(loss=loss, optimizer=optimizer):
                warnings.simplefilter("error", stint.StintWarning)
                step = stint.compile("objects.onnx", loss=loss, optimizer=optimizer, batch=8, **PORTABLE)
                self.like_torch(step, module, x, target, loss, optimizer)

    def test_groups_and_schedulers(self):
        x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))

        def made(lr=0.1):
            module = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.Linear(4, 4))
            # the last layer's bias is no parameter of the optimizer's, and stays
            return module, torch.optim.SGD([{"params": [module[0].weight, module[2].weight]},
                                            {"params": [module[0].bias, module[3].weight], "lr": 0.02, "weight_decay": 0.0}],
                                           lr=lr, momentum=0.9, weight_decay=0.1)

        rates = torch.optim.lr_scheduler
        for schedule in lambda o: rates.StepLR(o, 2, 0.1), lambda o: rates.LinearLR(o, 0.1, total_iters=3):
            module, optimizer = made()
            kept = module[3].bias.detach().clone()
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # torch's own, too: of a scheduler before the first step
                warnings.filterwarnings("ignore", module="torch", category=DeprecationWarning)
                warnings.filterwarnings("ignore", category=FutureWarning)
                loss, scheduler = nn.CrossEntropyLoss(), schedule(optimizer)
                step = stint.export(module, x, loss=loss, optimizer=optimizer, scheduler=scheduler, **PORTABLE)
                self.like_torch(step, module, x, y, loss, optimizer, scheduler)
            self.assertEqual(set(step.trained()), {"0.weight", "0.bias", "2.weight", "3.weight"})
            torch.testing.assert_close(module[3].bias, kept)
        # what is compiled may not change: momentum, and the groups' rates apart
        optimizer.param_groups[1]["momentum"] = 0.8
        self.assertRaisesRegex(ValueError, "momentum of the optimizer changed", step.train, x, y)
        optimizer.param_groups[1]["momentum"], optimizer.param_groups[1]["lr"] = 0.9, 0.5
        self.assertRaisesRegex(ValueError, "changed apart", step.train, x, y)
        step.train(x, y, lr=0.1)

    def test_objects_for_a_file(self):
        module, x, y = nn.Sequential(nn.Linear(6, 4)), torch.randn(8, 6), torch.randint(0, 4, (8,))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        stint.export(module, x, loss="cross-entropy", optimizer="sgd", path="linear.onnx", **PORTABLE)
        given = {"loss": nn.CrossEntropyLoss(), "batch": 8, **PORTABLE}
        step = stint.compile("linear.onnx", optimizer=optimizer, **given)
        self.assertEqual(step.rate, 0.5)
        self.assertAlmostEqual(step.train(x, y), nn.functional.cross_entropy(module(x), y).item(), 5)
        with self.assertWarnsRegex(stint.StintWarning, "has 24 values, and the step trains 28"):
            stint.compile("linear.onnx", optimizer=torch.optim.SGD([module[0].weight]), **given)
        several = [{"params": [module[0].weight]}, {"params": [module[0].bias], "lr": 0.1}]
        with self.assertRaisesRegex(stint.UsageError, "no names here") as e:
            stint.plan("linear.onnx", optimizer=torch.optim.SGD(several), **given)
        self.assertIn("named_parameters", e.exception.hint)
        several = [{"params": [("0.weight", module[0].weight)]}, {"params": [("0.bias", module[0].bias)], "lr": 0.1}]
        stint.compile("linear.onnx", optimizer=torch.optim.SGD(several, lr=0.2), **given)
        optimizer.zero_grad()
        module(x).sum().backward()
        optimizer.step()
        optimizer.state[module[0].weight]["step"] = 1
        self.assertWarnsRegex(stint.StintWarning, "begins anew", stint.plan, "linear.onnx", optimizer=optimizer, **given)

    def test_what_is_no_object(self):
        module = nn.Linear(2, 2)
        given = {"module": module, "example_inputs": torch.randn(4, 2), **PORTABLE}
        sgd = torch.optim.SGD(module.parameters())
        for more, message, hint in (
                ({"loss": nn.functional.cross_entropy}, "'cross_entropy', into which", 'loss="cross-entropy", or torch.nn.CrossEntropyLoss'),
                ({"loss": lambda x, y: x - y}, "<lambda>", "output:NAME"),
                ({"loss": nn.MSELoss}, "class MSELoss", "MSELoss()"),
                ({"loss": nn.MSELoss(reduction="none")}, "reduction='none'", "'sum'"),
                ({"loss": nn.MultiMarginLoss()}, "no loss of the class MultiMarginLoss", "output:NAME"),
                ({"optimizer": torch.optim.Adam}, "'Adam', no optimizer yet", "module.parameters()"),
                ({"optimizer": torch.optim.lr_scheduler.StepLR(sgd, 1)}, "'StepLR', a scheduler", "scheduler=scheduler"),
                ({"optimizer": torch.optim.Rprop(module.parameters())}, "class Rprop", "AdamW"),
                ({"optimizer": torch.optim.SGD(nn.Linear(2, 2).parameters())}, "parameters that the module has not", "this module's"),
                ({"scheduler": torch.optim.lr_scheduler.StepLR(sgd, 1)}, "another optimizer's", "too"),
                ({"scheduler": 0.1, "optimizer": sgd}, "no object of torch.optim.lr_scheduler", "lr=X")):
            with self.assertRaises(stint.UsageError) as e:
                stint.export(**given, **{"loss": "mse", "optimizer": "sgd", **more})
            self.assertIn(message, e.exception.message)
            self.assertIn(hint, e.exception.hint)
        for from_file in stint.compile, stint.plan, stint.frontier:
            with self.assertRaisesRegex(stint.UsageError, "the model is 'Linear', and not the path of an ONNX file") as e:
                from_file(module, loss="mse", optimizer="sgd")
            self.assertIn("stint_train.export(module, example_inputs", e.exception.hint)

    def test_a_loss_in_the_model(self):
        """The way out that the message of a function names."""
        class WithLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 2)

            def forward(self, x, y):
                return (self.layer(x) - y).abs().pow(1.5).mean()

        module, x, y = WithLoss(), torch.randn(4, 3), torch.randn(4, 2)
        step = stint.export(module, (x, y), loss="output:mine", optimizer="sgd:lr=0.1", output_names=["mine"], **PORTABLE)
        self.assertAlmostEqual(step.train((x, y)), module(x, y).item(), 5)

    def test_tensors_that_want_a_gradient(self):
        module, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
        step = stint.export(module, x.detach(), loss="mse", optimizer="sgd:lr=0", **PORTABLE)
        y = module(x)
        self.assertEqual(step.eval(x, y), step.eval(x.detach(), y.detach()))
        self.assertEqual(step.train(x, 2 * y), step.train(x.detach().numpy(), 2 * y.detach().numpy()))
        np.testing.assert_allclose(step.predict(x)[next(iter(step.predict(x)))], y.detach(), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
