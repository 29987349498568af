/* The reference for benchmarks/many_arms.py: SCB (clip to scale) from a given state on, O(n) work
 * a round, losses made on demand as the simulator's adversaries make them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { GAP, SWITCH, CONSTANT };
enum { BLOCK = 256 };

static uint64_t scramble(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static const uint64_t GOLDEN = 0x9E3779B97F4A7C15ULL;

static double uniform_at(uint64_t key, int64_t t, int64_t k) {
    uint64_t stream = scramble(scramble(key * GOLDEN) + (uint64_t)t);
    return (scramble(stream + (uint64_t)(k + 1) * GOLDEN) >> 11) * 0x1p-53;
}

static double loss_of(int kind, double parameter, uint64_t key, int64_t t, int64_t k) {
    double mean = 0.5;
    if (kind == CONSTANT) return k == 0 ? parameter : 1.0;
    if (kind == GAP) {
        if (k == 0) mean = 0.5 - parameter;
    } else {
        int switched = t > parameter;
        if (k == 0 && !switched) mean = 0.4;
        if (k == 1 && switched) mean = 0.2;
    }
    return uniform_at(key, t, k) < mean ? 1.0 : 0.0;
}

/* Plays `rounds` rounds, the first of which is number t, from cumulative estimates L, threshold C
 * and normaliser x, all of them updated; fills q with the distribution after them. Returns the
 * mean number of passes for the normaliser. */
double many_arms(int64_t n, int64_t rounds, int64_t t, double C, double x, double *L, double *q,
                 int kind, double parameter, uint64_t key, const uint64_t *words) {
    int64_t blocks = (n + BLOCK - 1) / BLOCK, passes = 0;
    double *sums = malloc(blocks * sizeof(double));
    for (int64_t r = -1; r < rounds; r++) {
        if (r >= 0) {
            /* Sample: over the sums of blocks, then inside one block. */
            double u = (words[r] >> 11) * 0x1p-53, sum = 0.0;
            int64_t b = 0;
            while (b < blocks - 1 && u >= sum + sums[b]) sum += sums[b++];
            int64_t k = b * BLOCK, last = k + BLOCK < n ? k + BLOCK - 1 : n - 1;
            for (; k < last; k++) {
                sum += q[k];
                if (u < sum) break;
            }
            double loss = loss_of(kind, parameter, key, t, k);
            double clip = loss > C ? C : (loss < -C ? -C : loss);
            L[k] += (clip + C) / q[k];
            if (fabs(loss) > C) {
                C = 2.0 * fabs(loss);
                double smallest = L[0];
                for (int64_t i = 1; i < n; i++) smallest = L[i] < smallest ? L[i] : smallest;
                x = smallest - 4.0 * sqrt((double)n) * C * sqrt(t + 1.0);
            }
            t++;
        }
        /* Newton's method on S2(x)^(-1/2) from the last x. Convergence is quadratic: after a step
         * of 1e-6, relative to the nearest arm, x is as good as rounding allows. */
        double eta = 1.0 / (2.0 * C * sqrt((double)t)), S2 = 0.0;
        for (int pass = 0; pass < 50; pass++) {
            double S3 = 0.0;
            S2 = 0.0;
            for (int64_t i = 0; i < n; i++) {
                double d = 1.0 / (L[i] - x), d2 = d * d;
                S2 += d2;
                S3 += d2 * d;
            }
            passes++;
            double root = sqrt(S2), step = S2 * (1.0 - 2.0 * root / eta) / S3;
            if (step > 0.5 / root) step = 0.5 / root;
            x += step;
            if (fabs(step) * root <= 1e-6) break;
        }
        double beta = n / (2.0 * n + sqrt((double)n * t));
        double a = (1.0 - beta) * 4.0 / (eta * eta), floor = beta / n;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t end = (b + 1) * BLOCK < n ? (b + 1) * BLOCK : n;
            double sum = 0.0;
            for (int64_t i = b * BLOCK; i < end; i++) {
                double d = 1.0 / (L[i] - x);
                q[i] = a * d * d + floor;
                sum += q[i];
            }
            sums[b] = sum;
        }
    }
    free(sums);
    return (double)passes / (rounds + 1);
}
