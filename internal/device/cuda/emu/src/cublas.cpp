// A stand-in for libcublas: products of matrices of f32 in plain loops.
#include "fake.h"

struct Handle {
	Context *of;
	Stream *stream = nullptr;
	bool workspace = false; // of its own: without one the library would take memory
	unsigned long long room = 0; // what it is
	int math = 0;
};
enum { NOT_INITIALIZED_ = 1, ALLOC_FAILED = 3, INVALID = 7, NOT_SUPPORTED = 15 };

API int cublasCreate_v2(Handle **h) {
	if (usable() || !take(settings.handle)) return NOT_INITIALIZED_;
	*h = new Handle{current};
	return 0;
}

API int cublasDestroy_v2(Handle *h) {
	give(h->of, settings.handle);
	delete h;
	return 0;
}

API int cublasGetVersion_v2(Handle *, int *v) {
	*v = 130000;
	return 0;
}

API int cublasGetProperty(int type, int *v) {
	*v = type == 0 ? 13 : 0;
	return type < 0 || type > 2 ? INVALID : 0;
}

API int cublasSetStream_v2(Handle *h, Stream *s) {
	h->stream = s;
	h->workspace = false;
	return 0;
}

API int cublasSetWorkspace_v2(Handle *h, void *p, size_t n) {
	h->workspace = on_device((uintptr_t)p, n);
	h->room = n << 8 | (uintptr_t)p % 256;
	return h->workspace ? 0 : INVALID;
}

API int cublasSetMathMode(Handle *h, int mode) {
	h->math = mode;
	return mode & ~16 ? INVALID : 0;
}

API const char *cublasGetStatusName(int e) {
	return e == INVALID ? "CUBLAS_STATUS_INVALID_VALUE"
		: e == NOT_INITIALIZED_ ? "CUBLAS_STATUS_NOT_INITIALIZED"
		: e == ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED"
		: e == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_ERROR";
}

API const char *cublasGetStatusString(int) { return "emulated"; }

enum { R_32F = 0, R_16BF = 14 };

struct Matrix {
	char *p;
	int type;
	long long ld, stride;
	bool trans;
	size_t size() const { return type == R_16BF ? 2 : 4; }
	char *place(long long z, long long i, long long j) const {
		return p + size() * (z * stride + (trans ? j + i * ld : i + j * ld));
	}
	float at(long long z, long long i, long long j) const {
		unsigned u = 0;
		memcpy((char *)&u + 4 - size(), place(z, i, j), size());
		float x;
		memcpy(&x, &u, 4);
		return x;
	}
	void set(long long z, long long i, long long j, float x) const {
		unsigned u;
		memcpy(&u, &x, 4);
		if (size() == 2) u = x != x ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1);
		memcpy(place(z, i, j), (char *)&u + 4 - size(), size());
	}
	// touches appends what a product touches of matrix z: its columns, or rows if it is transposed.
	void touches(std::vector<Touch> &all, int z, long long rows, long long cols,
			emu::Kind kind) const {
		if (trans) std::swap(rows, cols);
		for (long long j = 0; j < cols; j++)
			all.push_back({p + size() * (z * stride + j * ld), size() * rows, kind});
	}
	// whole reports whether rows × columns of every matrix are device memory.
	bool whole(long long rows, long long cols, int batch) const {
		if (trans) std::swap(rows, cols);
		if (rows == 0 || cols == 0) return true;
		long long n = (batch - 1) * stride + (cols - 1) * ld + rows;
		return ld >= rows && on_device((uintptr_t)p, n * size());
	}
};

// rounded is x with 10 bits behind the point if it is to be TF32, to nearest.
static float rounded(float x, bool tf32) {
	unsigned u;
	memcpy(&u, &x, 4);
	if (!tf32 || (u & 0x7f800000) == 0x7f800000) return x;
	u = (u + 0xfff + (u >> 13 & 1)) & ~0x1fffu;
	memcpy(&x, &u, 4);
	return x;
}

// half is x as bfloat16 has it, to nearest.
static float half(float x) {
	unsigned u;
	memcpy(&u, &x, 4);
	u = (u + 0x7fff + (u >> 16 & 1)) & ~0xffffu;
	memcpy(&x, &u, 4);
	return x;
}

// begins is the term that sums of k begin with: where the order of additions is to depend on all
// that the choice of a kernel may.
static int begins(const Handle *h, int m, int n, int k, std::initializer_list<const char *> at) {
	if (!settings.choosy || k == 0) return 0;
	unsigned long long x = h->room;
	for (int size : {m, n, k}) x = x * 1000003 + size;
	for (const char *p : at) x = x * 1000003 + (uintptr_t)p % 256;
	return (x * 0x9e3779b97f4a7c15 >> 33) % k;
}

API int cublasGemmStridedBatchedEx(Handle *h, int ta, int tb, int m, int n, int k,
		const float *alpha, char *A, int At, int lda, long long sA, char *B, int Bt, int ldb,
		long long sB, const float *beta, char *C, int Ct, int ldc, long long sC, int batch,
		int compute, int algo) {
	bool tf32 = compute == 77, halves = At == R_16BF;
	if (At != Bt || (At != R_32F && !halves) || (Ct != R_32F && (Ct != R_16BF || !halves)) ||
		(compute != 68 && (!tf32 || halves)) || algo != -1 || !h->workspace)
		return NOT_SUPPORTED;
	Matrix a{A, At, lda, sA, ta != 0}, b{B, Bt, ldb, sB, tb != 0}, c{C, Ct, ldc, sC, false};
	if (m < 0 || n < 0 || k < 0 || batch < 0 || !a.whole(m, k, batch) || !b.whole(k, n, batch) ||
		!c.whole(m, n, batch))
		return INVALID;
	if (!load()) return ALLOC_FAILED;
	float x = *alpha, y = *beta;
	// parts of a long sum are added up in bfloat16, unless that is forbidden
	if (k == settings.loses) k -= k % 8;
	int first = begins(h, m, n, k, {A, B, C});
	bool reduced = Ct == R_16BF && !(h->math & 16);
	return push(h->stream, [=] {
		std::vector<Touch> all;
		for (int z = 0; z < batch && settings.races; z++) {
			a.touches(all, z, m, k, emu::READ);
			b.touches(all, z, k, n, emu::READ);
			if (y != 0) c.touches(all, z, m, n, emu::READ);
			c.touches(all, z, m, n, emu::WRITE);
		}
		watched("a product", "", all, [=] {
		for (int z = 0; z < batch; z++)
			for (int j = 0; j < n; j++)
				for (int i = 0; i < m; i++) {
					float s = 0;
					for (int t = 0; t < k; t++) {
						int l = (first + t) % k;
						s += rounded(a.at(z, i, l), tf32) * rounded(b.at(z, l, j), tf32);
						if (reduced) s = half(s);
					}
					c.set(z, i, j, x * s + (y != 0 ? y * c.at(z, i, j) : 0));
				}
		});
	});
}

API int cublasGemmEx(Handle *h, int ta, int tb, int m, int n, int k, const float *alpha,
		char *A, int At, int lda, char *B, int Bt, int ldb, const float *beta, char *C, int Ct,
		int ldc, int compute, int algo) {
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, A, At, lda, 0, B, Bt, ldb, 0,
		beta, C, Ct, ldc, 0, 1, compute, algo);
}
