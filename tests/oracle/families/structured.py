"""Sequences, graphs, points, tables: recurrent networks, TCN, GNN, PointNet, DLRM, a mixture of experts."""
import torch
import torch.nn.functional as F
from torch import nn

from .family import Family, labels, normal


class Recurrent(nn.Module):
    def __init__(self, kind, **kw):
        super().__init__()
        self.embed = nn.Embedding(23, 6)
        self.net = kind(6, 8, batch_first=True, **kw)
        self.head = nn.Linear(16 if kw.get("bidirectional") else 8, 4)

    def forward(self, tokens):
        y, _ = self.net(self.embed(tokens))
        return self.head(y[:, -1])


class LastState(nn.Module):
    """Time first, the last hidden state of both directions, a given first state."""

    def __init__(self, kind):
        super().__init__()
        self.net, self.head = kind(5, 7, bidirectional=True), nn.Linear(14, 4)
        self.lstm = kind is nn.LSTM

    def forward(self, x, first):
        _, h = self.net(x, (first, 0.5 * first) if self.lstm else first)
        h = h[0] if self.lstm else h
        return self.head(torch.cat([h[0], h[1]], -1))


class TemporalBlock(nn.Module):
    def __init__(self, a, b, dilation, norm):
        super().__init__()
        self.pad = 2 * dilation
        self.conv1 = norm(nn.Conv1d(a, b, 3, padding=self.pad, dilation=dilation))
        self.conv2 = norm(nn.Conv1d(b, b, 3, padding=self.pad, dilation=dilation))
        self.skip = nn.Conv1d(a, b, 1) if a != b else None
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        y = self.drop(F.relu(self.conv1(x)[:, :, :-self.pad].contiguous()))
        y = self.drop(F.relu(self.conv2(y)[:, :, :-self.pad].contiguous()))
        return F.relu(y + (x if self.skip is None else self.skip(x)))


class Tcn(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.net = nn.Sequential(*(TemporalBlock(a, 10, d, norm) for a, d in ((3, 1), (10, 2), (10, 4))))
        self.head = nn.Linear(10, 5)

    def forward(self, x):
        return self.head(self.net(x)[:, :, -1])


class Gnn(nn.Module):
    """Messages along edges, summed and averaged at their ends."""

    def __init__(self):
        super().__init__()
        self.message = nn.ModuleList((nn.Linear(5, 12), nn.Linear(12, 12)))
        self.own = nn.ModuleList((nn.Linear(5, 12), nn.Linear(12, 12)))
        self.head = nn.Linear(12, 3)

    def forward(self, x, edges):
        source, sink = edges[0], edges[1]
        degree = torch.zeros(x.shape[0], dtype=x.dtype).scatter_add(0, sink, torch.ones(sink.shape[0], dtype=x.dtype))
        for i, (message, own) in enumerate(zip(self.message, self.own)):
            m = message(x)[source]
            total = torch.zeros(x.shape[0], m.shape[1], dtype=x.dtype)
            total = total.scatter_add(0, sink[:, None].expand(-1, m.shape[1]), m)
            if i:
                total = total / degree.clamp(min=1)[:, None]
            x = F.relu(total + own(x))
        return self.head(x)


class Dlrm(nn.Module):
    """Embedding bags beside a small network, all pairs' products, a second network."""

    def __init__(self, padded):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, 8, mode=m) for n, m in ((31, "sum"), (17, "mean"), (53, "sum")))
        self.bottom = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, a, b, c):
        x = self.bottom(x)
        z = torch.stack([x] + [bag(i) for bag, i in zip(self.bags, (a, b, c))], 1)
        product = torch.bmm(z, z.transpose(1, 2))
        row, column = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, product[:, row, column]], 1))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.turn_head = nn.Linear(8, 9)
        self.net = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 24, 1),
                                 nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(24, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 6))

    def forward(self, x):
        turn = self.turn_head(torch.max(self.turn(x), 2)[0]).view(-1, 3, 3) + torch.eye(3, dtype=x.dtype)
        x = torch.bmm(x.transpose(1, 2), turn).transpose(1, 2)
        return self.head(torch.max(self.net(x), 2)[0])


class Experts(nn.Module):
    """The two best of four experts for each token, weighted."""

    def __init__(self):
        super().__init__()
        self.embed, self.gate = nn.Linear(6, 10), nn.Linear(10, 4, bias=False)
        self.up, self.down = nn.Parameter(0.3 * torch.randn(4, 10, 16)), nn.Parameter(0.3 * torch.randn(4, 16, 10))
        self.head = nn.Linear(10, 5)

    def forward(self, x):
        x = self.embed(x)
        best, index = torch.topk(self.gate(x), 2, dim=-1)
        weight = torch.zeros(x.shape[0], 4, dtype=x.dtype).scatter(1, index, best.softmax(-1))
        every = torch.einsum("bth,thd->btd", F.silu(torch.einsum("bd,tdh->bth", x, self.up)), self.down)
        return self.head(x + torch.einsum("bt,btd->bd", weight, every))


def sequence(kind, **kw):
    return Family(lambda: Recurrent(kind, **kw), labels(23, 3, 9), labels(4, 3))


def states(kind):
    return Family(lambda: LastState(kind), lambda: (torch.randn(8, 3, 5), torch.randn(2, 3, 7)), labels(4, 3))


TABLE = {
    "lstm": sequence(nn.LSTM),
    "lstm_bidirectional": sequence(nn.LSTM, bidirectional=True, num_layers=2),
    "lstm_states": states(nn.LSTM),
    "gru": sequence(nn.GRU),
    "gru_bidirectional": sequence(nn.GRU, bidirectional=True, num_layers=2),
    "gru_states": states(nn.GRU),
    "rnn": sequence(nn.RNN, nonlinearity="relu", bias=False),
    "tcn": Family(lambda: Tcn(nn.utils.parametrizations.weight_norm), normal(3, 3, 20), labels(5, 3)),
    "tcn_old_norm": Family(lambda: Tcn(nn.utils.weight_norm), normal(3, 3, 20), labels(5, 3), also=("mul*",)),
    "gnn": Family(Gnn, lambda: (torch.randn(11, 5), torch.randint(0, 11, (2, 30))), labels(3, 11)),
    "dlrm": Family(lambda: Dlrm(False), lambda: (torch.randn(6, 7), torch.randint(0, 31, (6, 3)),
                                                torch.randint(0, 17, (6, 2)), torch.randint(0, 53, (6, 4))),
                   lambda: torch.rand(6, 1).round(), "bce-with-logits"),
    "pointnet": Family(PointNet, normal(4, 3, 25), labels(6, 4)),
    "experts": Family(Experts, normal(9, 6), labels(5, 9)),
}
