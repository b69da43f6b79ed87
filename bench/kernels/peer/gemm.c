/* OpenBLAS: cblas_sgemm, cblas_sgemv for a single row, and a parallel loop of
 * products for a batch. */
#include "peer.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

static float *a, *b, *c;
static int trans_a, trans_b;
static long batch, m, k, n;

void describe(char *text, size_t size)
{
	const char *kind[] = {"sequential", "pthread", "openmp"};
	openblas_set_num_threads(threads);
	snprintf(text, size, "%s core, %s build (%s)", openblas_get_corename(), kind[openblas_get_parallel()], openblas_get_config());
}

const char *prepare(const char *name, const long *x, int count)
{
	if (strcmp(name, "gemm") != 0 || count != 6)
		return "want gemm transA transB batch m k n";
	trans_a = x[0], trans_b = x[1], batch = x[2], m = x[3], k = x[4], n = x[5];
	c = operand(0, batch * m * n);
	a = operand(1, batch * m * k);
	b = operand(2, batch * k * n);
	result = c, results = batch * m * n;
	return NULL;
}

static void one(long i)
{
	cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, m, n, k,
		1, a + i * m * k, trans_a ? m : k, b + i * k * n, trans_b ? k : n, 0, c + i * m * n, n);
}

void launch(void)
{
	if (m == 1 && batch == 1) {
		if (trans_b)
			cblas_sgemv(CblasRowMajor, CblasNoTrans, n, k, 1, b, k, a, 1, 0, c, 1);
		else
			cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b, n, a, 1, 0, c, 1);
		return;
	}
	if (batch == 1) {
		one(0);
		return;
	}
#pragma omp parallel for num_threads(threads) if (threads > 1)
	for (long i = 0; i < batch; i++)
		one(i);
}
