"""The MLP's training step in JAX: python3 jax_step.py mlp-b1|mlp-b128, served as worker.py says.

One jitted function with donated parameters, SGD, mean cross-entropy: the fastest way we know.
"""
import sys

import jax
import jax.numpy as jnp
import numpy

import worker

WIDTHS = (784, 1024, 1024, 10)
BATCH = {"mlp-b1": 1, "mlp-b128": 128}
RATE = 0.01


def forward(parameters, x):
    for i, (w, b) in enumerate(parameters):
        x = x @ w + b
        if i + 1 < len(parameters):
            x = jax.nn.relu(x)
    return x


def loss(parameters, x, target):
    logits = jax.nn.log_softmax(forward(parameters, x))
    return -jnp.mean(jnp.take_along_axis(logits, target[:, None], 1))


def update(parameters, x, target):
    value, gradient = jax.value_and_grad(loss)(parameters, x, target)
    return value, jax.tree.map(lambda p, g: p - RATE * g, parameters, gradient)


def main(batch):
    jax.jit(lambda x: x + 1)(jnp.zeros(4)).block_until_ready()    # starts the back end
    baseline = worker.resident()
    random = numpy.random.default_rng(0)
    at = [[jnp.asarray(random.uniform(-1, 1, (a, b)) / a ** 0.5, jnp.float32), jnp.zeros(b, jnp.float32)]
          for a, b in zip(WIDTHS, WIDTHS[1:])]
    x = jnp.asarray(random.standard_normal((batch, WIDTHS[0])), jnp.float32)
    target = jnp.asarray(random.integers(0, WIDTHS[-1], batch))
    compiled = jax.jit(update, donate_argnums=0)

    def step():
        nonlocal at
        value, at = compiled(at, x, target)
        jax.block_until_ready((value, at))

    worker.serve(step, baseline)


if __name__ == "__main__":
    main(BATCH[sys.argv[1]])
