// A stand-in for libcublas: products of matrices of f32 in plain loops.
#include "fake.h"

struct Handle {
	Stream *stream = nullptr;
	bool workspace = false; // of its own: without one the library would take memory
};
enum { NOT_INITIALIZED_ = 1, INVALID = 7, NOT_SUPPORTED = 15 };

API int cublasCreate_v2(Handle **h) {
	if (usable()) return NOT_INITIALIZED_;
	*h = new Handle;
	return 0;
}

API int cublasDestroy_v2(Handle *h) {
	delete h;
	return 0;
}

API int cublasGetVersion_v2(Handle *, int *v) {
	*v = 130000;
	return 0;
}

API int cublasSetStream_v2(Handle *h, Stream *s) {
	h->stream = s;
	h->workspace = false;
	return 0;
}

API int cublasSetWorkspace_v2(Handle *h, void *p, size_t n) {
	h->workspace = on_device((uintptr_t)p, n);
	return h->workspace ? 0 : INVALID;
}

API const char *cublasGetStatusName(int e) {
	return e == INVALID ? "CUBLAS_STATUS_INVALID_VALUE"
		: e == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_ERROR";
}

API const char *cublasGetStatusString(int) { return "emulated"; }

struct Matrix {
	float *p;
	long long ld, stride;
	bool trans;
	float &at(long long z, long long i, long long j) const {
		return p[z * stride + (trans ? j + i * ld : i + j * ld)];
	}
	// whole reports whether rows × columns of every matrix are device memory.
	bool whole(long long rows, long long cols, int batch) const {
		if (trans) std::swap(rows, cols);
		if (rows == 0 || cols == 0) return true;
		long long n = (batch - 1) * stride + (cols - 1) * ld + rows;
		return ld >= rows && on_device((uintptr_t)p, n * sizeof(float));
	}
};

API int cublasGemmStridedBatchedEx(Handle *h, int ta, int tb, int m, int n, int k,
		const float *alpha, float *A, int At, int lda, long long sA, float *B, int Bt, int ldb,
		long long sB, const float *beta, float *C, int Ct, int ldc, long long sC, int batch,
		int compute, int algo) {
	if (At || Bt || Ct || compute != 68 || algo != -1 || !h->workspace) return NOT_SUPPORTED;
	Matrix a{A, lda, sA, ta != 0}, b{B, ldb, sB, tb != 0}, c{C, ldc, sC, false};
	if (m < 0 || n < 0 || k < 0 || batch < 0 || !a.whole(m, k, batch) || !b.whole(k, n, batch) ||
		!c.whole(m, n, batch))
		return INVALID;
	float x = *alpha, y = *beta;
	return push(h->stream, [=] {
		for (int z = 0; z < batch; z++)
			for (int j = 0; j < n; j++)
				for (int i = 0; i < m; i++) {
					float s = 0;
					for (int l = 0; l < k; l++) s += a.at(z, i, l) * b.at(z, l, j);
					float &to = c.at(z, i, j);
					to = x * s + (y != 0 ? y * to : 0);
				}
	});
}

API int cublasGemmEx(Handle *h, int ta, int tb, int m, int n, int k, const float *alpha,
		float *A, int At, int lda, float *B, int Bt, int ldb, const float *beta, float *C, int Ct,
		int ldc, int compute, int algo) {
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, A, At, lda, 0, B, Bt, ldb, 0,
		beta, C, Ct, ldc, 0, 1, compute, algo);
}
