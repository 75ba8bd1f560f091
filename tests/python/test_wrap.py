"""stint_train.torch.wrap under loops of PyTorch's, against the module itself."""
import copy
import gc
import pickle
import threading
import unittest

import numpy as np
import torch
from stint_train import BudgetError, StintError, UsageError
from stint_train.torch import checkpoint, wrap
from torch import nn

OPTIONS = {"portable": True, "threads": 1}


class Net(nn.Module):
    """Batch norm, a tie, something frozen, outputs in a structure."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.first, self.second = nn.Linear(144, 16), nn.Linear(16, 16, bias=False)
        self.tied, self.head = nn.Linear(16, 16), nn.Linear(16, 10)
        self.tied.weight = self.second.weight
        self.head.bias.requires_grad_(False)

    def forward(self, x, *, more=None):
        if more is not None:
            x = x + more["shift"]
        x = self.first(torch.relu(self.bn(self.conv(x))).flatten(1))
        y = self.head(self.tied(torch.relu(self.second(x))))
        return {"logits": y, "parts": (y.sum(1), x)}


def batch(k):
    g = torch.Generator().manual_seed(k)
    return torch.randn(8, 1, 8, 8, generator=g), torch.randint(0, 10, (8,), generator=g)


def loss_of(out, y):
    return nn.functional.cross_entropy(out["logits"], y) + 0.1 * out["parts"][0].pow(2).mean() + 0.01 * out["parts"][1].mean()


def train(model, steps=4, parts=1):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    losses = []
    for k in range(steps):
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        for part in range(parts):
            x, y = batch(parts * k + part)
            loss = loss_of(model(x), y) / parts
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


class Wrap(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def same(self, model, want, **more):
        have, want = model.state_dict(), want.state_dict()
        self.assertEqual(list(have), list(want))
        for name, value in want.items():
            torch.testing.assert_close(have[name], value, **(more or {"rtol": 1e-4, "atol": 1e-5}), msg=lambda m, name=name: f"{name}: {m}")

    def pair(self, **more):
        plain = Net()
        return plain, wrap(copy.deepcopy(plain), batch(0)[0], **{**OPTIONS, **more})

    def test_trains_as_torch(self):
        for parts in 1, 2:
            with self.subTest(parts=parts):
                plain, model = self.pair()
                np.testing.assert_allclose(train(model, parts=parts), train(plain, parts=parts), rtol=1e-5)
                self.same(model, plain)
                x = batch(9)[0]
                plain.eval(), model.eval()
                with torch.no_grad():
                    torch.testing.assert_close(model(x[:3])["logits"], plain(x[:3])["logits"], rtol=1e-4, atol=1e-5)

    def test_the_first_call_is_the_example(self):
        plain = Net()
        model = checkpoint(copy.deepcopy(plain), budget="100%", **OPTIONS)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # made before there is a step
        for m, o in (model, optimizer), (plain, torch.optim.SGD(plain.parameters(), lr=0.1)):
            x, y = batch(0)
            loss_of(m(x), y).backward()
            o.step()
        self.same(model, plain)

    def test_same_bits_at_every_budget(self):
        _, model = self.pair()
        train(model)
        torch.manual_seed(0)
        _, least = self.pair(budget="min")
        train(least)
        self.same(least, model, rtol=0, atol=0)
        with self.assertRaises(BudgetError):
            self.pair(budget=1000)

    def test_inputs_by_name_and_their_gradients(self):
        plain = Net()
        x, y = batch(0)
        shift = torch.zeros(1, 8, 8, requires_grad=True)
        x.requires_grad_()
        model = wrap(copy.deepcopy(plain), x, example_kwargs={"more": {"shift": shift}}, **OPTIONS)
        got = []
        for m in plain, model:
            x.grad = shift.grad = None
            loss_of(m(x, more={"shift": shift}), y).backward()
            got.append((x.grad, shift.grad))
        for have, want in zip(got[1], got[0]):
            torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-6)
        for m in plain, model:
            m.eval()
        with torch.no_grad():  # the shift is every row's
            torch.testing.assert_close(*(m(x[:3], more={"shift": shift})["logits"] for m in (model, plain)), rtol=1e-4, atol=1e-5)
        model.train()
        with self.assertRaisesRegex(StintError, "the first axis of 'in_1' does not count samples"):
            model(x[:3], more={"shift": shift})
        with self.assertRaisesRegex(ValueError, "the module was wrapped for inputs"):
            model(x)
        with self.assertRaisesRegex(RuntimeError, "an input wants a gradient that the example's did not"):
            self.pair()[1](x)

    def test_a_generator_behind_a_discriminator(self):
        def net(*sizes):
            return nn.Sequential(nn.Linear(*sizes[:2]), nn.LeakyReLU(0.2), nn.Linear(*sizes[1:]))

        def play(generator, judge, rounds=4):
            optimizers = [torch.optim.Adam(m.parameters(), 1e-3) for m in (generator, judge)]
            bce, losses = nn.functional.binary_cross_entropy_with_logits, []
            for k in range(rounds):
                g = torch.Generator().manual_seed(k)
                fake, real = generator(torch.randn(8, 16, generator=g)), torch.randn(8, 32, generator=g)
                for x, want in (real, 1.0), (fake.detach(), 0.0):
                    loss = bce(judge(x), torch.full((8, 1), want))
                    loss.backward()
                    losses.append(loss.item())
                optimizers[1].step()
                optimizers[1].zero_grad()
                loss = bce(judge(fake), torch.ones(8, 1))
                loss.backward()
                optimizers[0].step()
                optimizers[0].zero_grad()
                losses.append(loss.item())
            return losses

        plain = net(16, 64, 32), net(32, 64, 1)
        generator, judge = (copy.deepcopy(m) for m in plain)
        wrapped = wrap(generator, torch.zeros(8, 16), **OPTIONS), wrap(judge, torch.zeros(8, 32, requires_grad=True), **OPTIONS)
        np.testing.assert_allclose(play(*wrapped), play(*plain), rtol=1e-5)

    def test_fewer_rows_than_the_example(self):
        """An epoch's last batch: statistics, losses and gradients by parameters and inputs are torch's of so few rows."""
        plain = Net()
        model = wrap(copy.deepcopy(plain), batch(0)[0].requires_grad_(), **OPTIONS)
        optimizers = [torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-2) for m in (plain, model)]
        for k, rows in enumerate((8, 3, 8, 1, 5)):
            got = []
            for m, optimizer in zip((plain, model), optimizers):
                x, y = batch(k)
                x = x[:rows].requires_grad_()
                loss = loss_of(m(x), y[:rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                got.append((loss.detach(), x.grad))
            for have, want in zip(got[1], got[0]):
                torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-6)
        self.same(model, plain)
        together = wrap(nn.Sequential(nn.Linear(4, 4), nn.Softmax(0)), torch.zeros(8, 4), **OPTIONS)
        with self.assertRaisesRegex(StintError, "a step takes a whole batch: .*Softmax.* takes the samples of a batch together"):
            together(torch.zeros(3, 4))
        together(torch.zeros(8, 4)).sum().backward()  # nothing was lost

    def test_options_that_the_module_has(self):
        for name, value in (("loss", "mse"), ("optimizer", "sgd"), ("batch", 4), ("micro_batch", 2), ("freeze", ["conv.*"]), ("train", ["*"]),
                            ("input_gradient", ["in_0"])):
            for make in self.pair, lambda **more: checkpoint(Net(), **more):
                with self.assertRaisesRegex(UsageError, f"{name}= is no option of a wrapped module"):
                    make(**{name: value})
        for dim in {"in_0:0": 4}, "in_0:0=4", ["in_0:0=4"]:
            with self.assertRaisesRegex(UsageError, "dim says in_0:0=4, and the example has 8 rows"):
                self.pair(dim=dim)
        with self.assertRaisesRegex(UsageError, "no input has an axis of that name"):
            self.pair(dim={"length": 4})
        self.pair(dim={"in_0:0": 8})

    def test_only_the_last_forward_pass(self):
        plain, model = self.pair()
        (x, y), (other, _) = batch(0), batch(1)
        old = loss_of(model(x), y)
        with torch.no_grad():
            model(other)  # in training: statistics follow it, as in torch
            plain(x), plain(other)
        with self.assertRaisesRegex(RuntimeError, "the activations of this forward pass are gone"):
            old.backward()
        loss = loss_of(model(x), y)
        loss.backward(retain_graph=True)
        with self.assertRaisesRegex(RuntimeError, "the activations of this forward pass are gone"):
            loss.backward()
        plain(x)
        self.same(model, plain)

    def test_part_of_the_outputs(self):
        plain, model = self.pair()
        x, y = batch(0)
        for m in plain, model:
            nn.functional.cross_entropy(m(x)["logits"], y).backward()
        for (name, p), q in zip(model.named_parameters(), plain.parameters()):
            self.assertEqual(p.grad is None, q.grad is None, name)
            if q.grad is not None:
                torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-6)

    def test_what_does_not_go_is_told(self):
        _, model = self.pair()
        x, y = batch(0)
        model.eval()
        with self.assertRaisesRegex(RuntimeError, "an evaluation of a wrapped module has no backward pass"):
            loss_of(model(x), y).backward()
        model.train()
        with self.assertRaisesRegex(ValueError, "wants the shape"):
            model(x[:, :, :3])
        for move in (lambda: model.half(), lambda: model.to(torch.float64), lambda: model.to("meta")):
            with self.assertRaisesRegex(RuntimeError, "would be moved or converted"):
                move()
        self.assertIs(model.to("cpu"), model)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable|differentiate twice"):
            p = model.first.weight
            g, = torch.autograd.grad(loss_of(model(x), y), p, create_graph=True)
            g.sum().backward()
        hook = model.bn.register_forward_hook(lambda *a: None)
        with self.assertRaisesRegex(RuntimeError, "a hook of BatchNorm2d inside"):
            model(x)
        hook.remove()
        model.bn.eval()
        with self.assertRaisesRegex(RuntimeError, r"BatchNorm2d was in train\(\) when"):
            model(x)
        model.train()
        model.head.bias.requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "'head.bias' was frozen"):
            model(x)
        model.head.bias.requires_grad_(False)
        model.first.weight.data = torch.zeros(16, 144)
        with self.assertRaisesRegex(RuntimeError, "'first.weight' lies elsewhere"):
            model(x)
        with self.assertRaisesRegex(UsageError, "not on the CPU"):
            wrap(Net(), x.to("meta"), **OPTIONS)

    def test_copies_and_files(self):
        plain, model = self.pair()
        train(model)
        for other in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
            other.load_state_dict(model.state_dict())
            self.same(other, model, rtol=0, atol=0)
            train(other, 1)
            self.assertNotEqual(other.first.weight.data_ptr(), model.first.weight.data_ptr())
        plain.load_state_dict(model.state_dict())
        self.same(plain, model, rtol=0, atol=0)
        weight = model.first.weight.detach()  # a view outlives the model
        want = weight.clone()
        del model
        gc.collect()
        torch.testing.assert_close(weight, want, rtol=0, atol=0)

    def test_two_at_once(self):
        models, got = [self.pair()[1] for _ in range(2)], {}
        twins = [copy.deepcopy(model) for model in models]
        threads = [threading.Thread(target=lambda k=k: got.update({k: train(models[k])})) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual([got[0], got[1]], [train(twin) for twin in twins])


if __name__ == "__main__":
    unittest.main()
