"""The fastest that any rule could generate which does not know how long responses get (docs/reports/rl-fusion.py).

Model. A decode step of an attention replica takes a(b) + k * c seconds: b responses, c tokens of context in all. A
response takes part in one step for each of its tokens. A rule sees the age of a response (its tokens so far), not its
length, so it may choose what responses of each age share a replica with, and nothing else.

A batch of N responses needs S_i * N * d tokens of age i: a share S_i of them reach it, and an age is d tokens wide. If
replicas spend t_m seconds on the mixture m, which holds n_mi responses of age i and has steps of s_m seconds:

    for each age i    sum over m of t_m * n_mi / s_m  >=  S_i * N * d        its tokens are generated
    all replicas      D = sum of t_m / replicas                              time that generation takes
    the longest       W = sum over m, i of t_m * n_mi / (S_i * N)            time at every age

Steps of T seconds need D + F <= T (F: scoring and training, which use the same cards) and W <= (bound + 1) * T. By
duality, prices p_i of a token of age i and a price q of a second of W prove D + q * W >= sum of p_i * S_i * N * d if no
mixture earns more than it costs,

    sum over i of n_mi * p_i  <=  s_m * (1 / replicas + q * sum over i of n_mi / (S_i * N)),

and then T >= (sum + F) / (1 + q * (bound + 1)). A mixture of two ages is the best for its b and c, so that only those
are looked at, on a grid: AGES ages, SIZES responses, SHARES of the first age. The mean time of the longest responses
at an age is that of all responses there, since nothing tells them apart.
"""

AGES = 16
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 50, 64, 80, 100, 128)
SHARES = (1.0, 0.98, 0.9, 0.75, 0.5, 0.25, 0.1, 0.02)


class Decoding:
    """Replicas of one kind, and the lengths of what they generate."""

    def __init__(self, replicas, base, per_context, cache, reach, width, prompt):
        """`base`: a(b) for each of SIZES; `reach`: S_i; `cache`: tokens that a replica holds."""
        self.replicas, self.reach, self.width = replicas, reach, width
        self.mixtures = []  # age, its responses, other age, its responses, seconds of a step
        contexts = [prompt + (i + 0.5) * width for i in range(AGES)]
        for size, seconds in zip(SIZES, base):
            for i in range(AGES):
                for j in range(AGES):
                    for share in SHARES if i != j else SHARES[:1]:
                        n, m = size * share, size * (1 - share)
                        context = n * contexts[i] + m * contexts[j]
                        if context <= cache:
                            self.mixtures.append((i, n, j, m, seconds + per_context * context))

    def proven(self, responses, price):
        """The largest sum of p_i * S_i * N * d that these mixtures admit and a few rounds find, for q = `price`."""
        late = [price / (s * responses) for s in self.reach]
        costs = [(i, n, j, m, step * (1 / self.replicas + n * late[i] + m * late[j])) for i, n, j, m, step in self.mixtures]
        prices = [min(cost / n for a, n, _, m, cost in costs if a == i and m == 0) for i in range(AGES)]
        best = 0
        for _ in range(40):
            earns = [1e-9] * AGES
            for i, n, j, m, cost in costs:
                ratio = (n * prices[i] + m * prices[j]) / cost
                if ratio > earns[i]:
                    earns[i] = ratio
                if m > 0 and ratio > earns[j]:
                    earns[j] = ratio
            worth = sum(p * s for p, s in zip(prices, self.reach)) * responses * self.width
            best = max(best, worth / max(earns))
            prices = [p / earned ** 0.5 for p, earned in zip(prices, earns)]
        return best

    def least_seconds(self, responses, fixed, bound):
        """Least seconds of a step with so many responses, of which `fixed` is for scoring and training."""
        return max((self.proven(responses, q) + fixed) / (1 + q * (bound + 1)) for q in (0, *(0.02 * 1.6 ** i for i in range(14))))
