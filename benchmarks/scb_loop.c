/* The reference for benchmarks/bandits.py: SCB (clip to scale) against a replayed matrix of
 * losses, with the same bookkeeping as the simulator, written plainly. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* A 64-bit generator for the choices (SplitMix64). */
static uint64_t next_word(uint64_t *s) {
    uint64_t z = (*s += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/* Plays T rounds; fills regret, the largest absolute loss and the mean number of Newton passes. */
void scb_loop(int64_t n, int64_t T, const double *losses, int64_t rows, uint64_t seed,
              double *out) {
    double *L = calloc(n, sizeof(double)), *q = malloc(n * sizeof(double));
    double *cumulative = calloc(n, sizeof(double));
    double C = 0.0, x = 0.0, low = INFINITY, high = -INFINITY, played = 0.0;
    int64_t passes = 0, clipped = 0;
    for (int64_t i = 0; i < n; i++) q[i] = 1.0 / n;
    for (int64_t t = 1; t <= T; t++) {
        const double *l = losses + ((t - 1) % rows) * n;
        for (int64_t i = 0; i < n; i++) {
            cumulative[i] += l[i];
            if (l[i] < low) low = l[i];
            if (l[i] > high) high = l[i];
        }
        double u = (next_word(&seed) >> 11) * 0x1p-53, sum = 0.0;
        int64_t k = 0;
        for (; k < n - 1; k++) {
            sum += q[k];
            if (u < sum) break;
        }
        double loss = l[k];
        played += loss;
        double clip = loss > C ? C : (loss < -C ? -C : loss);
        L[k] += (clip + C) / q[k];
        int jump = fabs(loss) > C;
        if (jump) {
            C = 2.0 * fabs(loss);
            clipped++;
        }
        if (C > 0.0) {
            double eta = 1.0 / (2.0 * C * sqrt((double)(t + 1))), S2 = 0.0, S3 = 0.0;
            if (jump) {
                double smallest = L[0];
                for (int64_t i = 1; i < n; i++)
                    if (L[i] < smallest) smallest = L[i];
                x = smallest - 2.0 * sqrt((double)n) / eta;
            }
            for (int pass = 0; pass < 50; pass++) {
                S2 = S3 = 0.0;
                passes++;
                for (int64_t i = 0; i < n; i++) {
                    double d = 1.0 / (L[i] - x), d2 = d * d;
                    q[i] = d2;
                    S2 += d2;
                    S3 += d2 * d;
                }
                if (fabs(1.0 - 4.0 * S2 / (eta * eta)) <= 1e-12) break;
                double root = sqrt(S2), step = S2 * (1.0 - 2.0 * root / eta) / S3;
                if (step > 0.5 / root) step = 0.5 / root;
                if (fabs(step) <= 1e-15 * fabs(x)) break;
                x += step;
            }
            double beta = n / (2.0 * n + sqrt((double)n * (t + 1)));
            double a = (1.0 - beta) / S2, b = beta / n;
            for (int64_t i = 0; i < n; i++) q[i] = a * q[i] + b;
        }
    }
    double best = cumulative[0];
    for (int64_t i = 1; i < n; i++)
        if (cumulative[i] < best) best = cumulative[i];
    out[0] = played - best;
    out[1] = fmax(fabs(low), fabs(high));
    out[2] = (double)passes / T;
    out[3] = (double)clipped;
    free(L);
    free(q);
    free(cumulative);
}
