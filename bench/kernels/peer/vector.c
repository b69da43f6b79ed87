/* Plain loops for the compiler to vectorise, with the vector functions of the C
 * library; and the machine's limits. */
#include "peer.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void piece(size_t lo, size_t hi);

static float *d, *x, *y, *z;
static size_t n, row;
static piece *body;

void describe(char *text, size_t size)
{
#ifdef __AVX512F__
	const char *set = "AVX-512";
#elif defined __AVX2__
	const char *set = "AVX2";
#else
	const char *set = "baseline instructions";
#endif
	snprintf(text, size, "cc %s, %s", __VERSION__, set);
}

#define EACH(name, expression)                                                  \
	static void name(size_t lo, size_t hi)                                  \
	{                                                                       \
		float *restrict const r = d;                                    \
		const float *restrict const a = x, *restrict const b = y;       \
		(void)b;                                                        \
		for (size_t i = lo; i < hi; i++)                                \
			r[i] = expression;                                      \
	}

EACH(add, a[i] + b[i])
EACH(relu, a[i] > 0 ? a[i] : 0)
EACH(exponential, expf(a[i]))
EACH(tangent, tanhf(a[i]))
EACH(gelu, 0.5f * a[i] * (1 + erff(a[i] * 0.70710678f)))
EACH(negate, -a[i])

static void sum(size_t lo, size_t hi)
{
	for (; lo < hi; lo += row) {
		float s = 0;
		for (size_t i = lo; i < lo + row; i++)
			s += x[i];
		d[lo / row] = s;
	}
}

static void softmax(size_t lo, size_t hi)
{
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo;
		float *restrict r = d + lo;
		float most = -INFINITY, s = 0;
		for (size_t i = 0; i < row; i++)
			most = a[i] > most ? a[i] : most;
		for (size_t i = 0; i < row; i++) {
			float e = expf(a[i] - most);
			r[i] = e;
			s += e;
		}
		for (size_t i = 0; i < row; i++)
			r[i] *= 1 / s;
	}
}

static void layer_norm(size_t lo, size_t hi)
{
	const float *restrict scale = y, *restrict bias = z;
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo;
		float *restrict r = d + lo;
		float s = 0, q = 0;
		for (size_t i = 0; i < row; i++)
			s += a[i];
		float mean = s / row;
		for (size_t i = 0; i < row; i++)
			q += (a[i] - mean) * (a[i] - mean);
		float inverse = 1 / sqrtf(q / row + 1e-5f);
		for (size_t i = 0; i < row; i++)
			r[i] = (a[i] - mean) * inverse * scale[i] + bias[i];
	}
}

static void rms_norm(size_t lo, size_t hi)
{
	const float *restrict scale = y;
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo;
		float *restrict r = d + lo;
		float q = 0;
		for (size_t i = 0; i < row; i++)
			q += a[i] * a[i];
		float inverse = 1 / sqrtf(q / row + 1e-5f);
		for (size_t i = 0; i < row; i++)
			r[i] = a[i] * inverse * scale[i];
	}
}

static void softmax_grad(size_t lo, size_t hi)
{
	for (; lo < hi; lo += row) {
		const float *restrict p = x + lo, *restrict g = y + lo;
		float *restrict r = d + lo;
		float s = 0;
		for (size_t i = 0; i < row; i++)
			s += p[i] * g[i];
		for (size_t i = 0; i < row; i++)
			r[i] = p[i] * (g[i] - s);
	}
}

static void layer_norm_grad(size_t lo, size_t hi)
{
	const float *restrict scale = y;
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo, *restrict g = z + lo;
		float *restrict r = d + lo;
		float s = 0, q = 0, t = 0, u = 0;
		for (size_t i = 0; i < row; i++)
			s += a[i], t += g[i] * scale[i];
		float mean = s / row, mean_g = t / row;
		for (size_t i = 0; i < row; i++) {
			q += (a[i] - mean) * (a[i] - mean);
			u += g[i] * scale[i] * (a[i] - mean);
		}
		float inverse = 1 / sqrtf(q / row + 1e-5f), along = inverse * inverse * u / row;
		for (size_t i = 0; i < row; i++)
			r[i] = inverse * (g[i] * scale[i] - mean_g - along * (a[i] - mean));
	}
}

static void rms_norm_grad(size_t lo, size_t hi)
{
	const float *restrict scale = y;
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo, *restrict g = z + lo;
		float *restrict r = d + lo;
		float q = 0, u = 0;
		for (size_t i = 0; i < row; i++)
			q += a[i] * a[i], u += g[i] * scale[i] * a[i];
		float inverse = 1 / sqrtf(q / row + 1e-5f), along = inverse * inverse * u / row;
		for (size_t i = 0; i < row; i++)
			r[i] = inverse * (g[i] * scale[i] - along * a[i]);
	}
}

/* The label of row i is i modulo the elements of a row; one tenth of its
 * probability is divided among the others. */
static void cross_entropy(size_t lo, size_t hi)
{
	const float other = 0.1f / (row - 1);
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo;
		float most = -INFINITY, e = 0, s = 0;
		for (size_t i = 0; i < row; i++)
			most = a[i] > most ? a[i] : most;
		for (size_t i = 0; i < row; i++)
			e += expf(a[i] - most), s += a[i];
		d[lo / row] = most + logf(e) - (0.9f - other) * a[lo / row % row] - other * s;
	}
}

static void cross_entropy_grad(size_t lo, size_t hi)
{
	const float other = 0.1f / (row - 1);
	for (; lo < hi; lo += row) {
		const float *restrict a = x + lo;
		float *restrict r = d + lo;
		float most = -INFINITY, e = 0, g = y[lo / row];
		for (size_t i = 0; i < row; i++)
			most = a[i] > most ? a[i] : most;
		for (size_t i = 0; i < row; i++) {
			r[i] = expf(a[i] - most);
			e += r[i];
		}
		for (size_t i = 0; i < row; i++)
			r[i] = (r[i] / e - other) * g;
		r[lo / row % row] -= (0.9f - other) * g;
	}
}

static void adam(size_t lo, size_t hi)
{
	float *restrict w = d, *restrict m = y, *restrict v = z;
	const float *restrict g = x;
	const float rate = 1e-3f / 0.1f, root = sqrtf(1 / 0.001f); /* step 1 */
	for (size_t i = lo; i < hi; i++) {
		m[i] = 0.9f * m[i] + 0.1f * g[i];
		v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
		w[i] -= rate * m[i] / (sqrtf(v[i]) * root + 1e-8f);
	}
}

static void sgd(size_t lo, size_t hi)
{
	float *restrict w = d;
	const float *restrict g = x;
	for (size_t i = lo; i < hi; i++)
		w[i] -= 1e-3f * g[i];
}

/* Philox4x32-10, sixteen counters at a time. */
static void dropout(size_t lo, size_t hi)
{
	enum { lanes = 16 };
	const uint32_t limit = 0.9f * 4294967296.0;
	const float scale = 1 / 0.9f;
	for (size_t i = lo; i < hi; i += 4 * lanes) {
		uint32_t c[4][lanes];
		float *restrict r = d + i;
		const float *restrict a = x + i;
		for (int j = 0; j < lanes; j++) {
			uint64_t counter = i / 4 + j;
			uint32_t c0 = counter, c1 = counter >> 32, c2 = 0, c3 = 0, k0 = 1, k1 = 0;
			for (int round = 0; round < 10; round++) {
				uint64_t p = (uint64_t)0xD2511F53u * c0, q = (uint64_t)0xCD9E8D57u * c2;
				c0 = (uint32_t)(q >> 32) ^ c1 ^ k0;
				c2 = (uint32_t)(p >> 32) ^ c3 ^ k1;
				c1 = (uint32_t)q, c3 = (uint32_t)p;
				k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
			}
			c[0][j] = c0, c[1][j] = c1, c[2][j] = c2, c[3][j] = c3;
		}
		for (int j = 0; j < 4 * lanes; j++)
			r[j] = c[j % 4][j / 4] < limit ? a[j] * scale : 0;
	}
}

/* Chains of fused multiply-adds, enough to keep every unit busy: 32 floats by
 * 12 chains by 65536 steps for each thread. */
static void fma_peak(size_t lo, size_t hi)
{
	/* As many chains as there are registers for, and in all the same additions. */
#ifdef __AVX512F__
	enum { lanes = 16, chains = 24, rounds = 32768 };
#else
	enum { lanes = 8, chains = 12, rounds = 131072 };
#endif
	typedef float wide __attribute__((vector_size(4 * lanes)));
	(void)lo, (void)hi;
	wide s[chains], a = {0}, b = {0};
	for (int j = 0; j < lanes; j++)
		a[j] = 0.999f, b[j] = 1e-3f;
	for (int j = 0; j < chains; j++)
		s[j] = b * (float)j;
	for (long i = 0; i < rounds; i++) {
#pragma GCC unroll 24
		for (int j = 0; j < chains; j++)
			s[j] = s[j] * a + b;
	}
	for (int j = 1; j < chains; j++)
		s[0] += s[j];
	d[16 * omp_get_thread_num()] = s[0][0];
}

static const struct {
	const char *name;
	piece *body;
} pieces[] = {
	{"fma", fma_peak}, {"negate", negate}, {"add", add}, {"relu", relu}, {"exp", exponential},
	{"tanh", tangent}, {"gelu", gelu}, {"softmax", softmax}, {"sum", sum}, {"layer-norm", layer_norm},
	{"rms-norm", rms_norm}, {"softmax-grad", softmax_grad}, {"layer-norm-grad", layer_norm_grad},
	{"rms-norm-grad", rms_norm_grad}, {"cross-entropy", cross_entropy}, {"cross-entropy-grad", cross_entropy_grad}, {"adam", adam}, {"sgd", sgd}, {"dropout", dropout},
};

const char *prepare(const char *name, const long *integers, int count)
{
	body = NULL;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
		if (strcmp(name, pieces[i].name) == 0)
			body = pieces[i].body;
	if (!body || count != 2)
		return "want the name of a loop, elements, elements of a row";
	n = integers[0], row = integers[1];
	d = operand(0, n), x = operand(1, n), y = operand(2, n), z = operand(3, n);
	for (size_t i = 0; body == adam && i < n; i++)
		z[i] = fabsf(z[i]);
	result = d, results = body == sum || body == cross_entropy ? n / row : n;
	return NULL;
}

/* Threads get whole rows, and whole blocks of the dropout's counters. */
void launch(void)
{
	if (threads == 1) {
		body(0, n);
		return;
	}
#pragma omp parallel num_threads(threads)
	{
		size_t unit = row > 64 ? row : 64, units = n / unit;
		size_t me = omp_get_thread_num(), all = omp_get_num_threads();
		body(units * me / all * unit, units * (me + 1) / all * unit);
	}
}
