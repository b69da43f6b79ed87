// A stand-in for libcudnn: convolutions of images by channels, rows and columns, of f32 or
// bfloat16, in plain loops. It has the algorithms that the driver asks for, and no dilated gradients of filters.
#include "fake.h"

enum { FLOAT = 0, BFLOAT16 = 9 };
enum { NO_HANDLE = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, INTERNAL_ERROR = 4000 };
struct Dnn {
	Context *of;
	Stream *stream = nullptr;
};
struct Four { // of a tensor n, c, h, w; of a filter outputs, inputs of a group, rows, columns
	int n, c, h, w, type;
	size_t elements() const { return (size_t)n * c * h * w; }
	size_t bytes() const { return (type == BFLOAT16 ? 2 : 4) * elements(); }
	long long at(int i, int j, int k, int l) const {
		return (((long long)i * c + j) * h + k) * w + l;
	}
};
struct Conv {
	int top, left, down, right, high, wide, groups = 1, math = 0;
};

API size_t cudnnGetVersion() { return 90100; }
API size_t cudnnGetCudartVersion() { return 13000; }
API const char *cudnnGetErrorString(int e) {
	return e == NO_HANDLE ? "CUDNN_STATUS_NOT_INITIALIZED"
		: e == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM"
		: e == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_INTERNAL_ERROR";
}
API int cudnnCreate(Dnn **h) {
	if (usable() || !take(settings.handle)) return NO_HANDLE;
	*h = new Dnn{current};
	return 0;
}
API int cudnnDestroy(Dnn *h) {
	give(h->of, settings.handle);
	delete h;
	return 0;
}
API int cudnnSetStream(Dnn *h, Stream *s) {
	h->stream = s;
	return 0;
}

template <class T> static int make(T **d) {
	*d = new T{};
	return 0;
}
template <class T> static int end(T *d) {
	delete d;
	return 0;
}
API int cudnnCreateTensorDescriptor(Four **d) { return make(d); }
API int cudnnDestroyTensorDescriptor(Four *d) { return end(d); }
API int cudnnCreateFilterDescriptor(Four **d) { return make(d); }
API int cudnnDestroyFilterDescriptor(Four *d) { return end(d); }
API int cudnnCreateConvolutionDescriptor(Conv **d) { return make(d); }
API int cudnnDestroyConvolutionDescriptor(Conv *d) { return end(d); }

static int four(Four *d, int format, int type, int n, int c, int h, int w) {
	if (format || (type != FLOAT && type != BFLOAT16)) return NOT_SUPPORTED;
	if (n < 1 || c < 1 || h < 1 || w < 1) return BAD_PARAM;
	*d = {n, c, h, w, type};
	return 0;
}
API int cudnnSetTensor4dDescriptor(Four *d, int format, int type, int n, int c, int h, int w) {
	return four(d, format, type, n, c, h, w);
}
API int cudnnSetFilter4dDescriptor(Four *d, int type, int format, int n, int c, int h, int w) {
	return four(d, format, type, n, c, h, w);
}
API int cudnnSetConvolution2dDescriptor(Conv *d, int top, int left, int down, int right, int high,
		int wide, int mode, int type) {
	if (top < 0 || left < 0 || down < 1 || right < 1 || high < 1 || wide < 1) return BAD_PARAM;
	*d = Conv{top, left, down, right, high, wide};
	return mode != 1 || type ? NOT_SUPPORTED : 0;
}
API int cudnnSetConvolutionGroupCount(Conv *d, int n) {
	d->groups = n;
	return n < 1 ? BAD_PARAM : 0;
}
API int cudnnSetConvolutionMathType(Conv *d, int math) {
	d->math = math;
	return math < 0 || math > 3 ? BAD_PARAM : 0;
}

// fits reports whether shapes belong together.
static bool fits(const Four &x, const Four &f, const Conv &c, const Four &y) {
	auto size = [](int in, int pad, int k, int step, int dil) {
		return 1 + (in + 2 * pad - ((k - 1) * dil + 1)) / step;
	};
	return x.n == y.n && f.n == y.c && f.c * c.groups == x.c && y.c % c.groups == 0 &&
		y.h == size(x.h, c.top, f.h, c.down, c.high) &&
		y.w == size(x.w, c.left, f.w, c.right, c.wide);
}

static int size(const Four &x, const Four &f, const Conv &c, const Four &y, int algo, size_t *n) {
	*n = settings.room;
	if (f.n == settings.lacks) return NOT_SUPPORTED;
	if (f.n == settings.fails) return INTERNAL_ERROR;
	if (x.type != f.type || x.type != y.type || (x.type == BFLOAT16) != (c.math == 1))
		return NOT_SUPPORTED; // what nobody asks for
	return algo != 1 ? NOT_SUPPORTED : fits(x, f, c, y) ? 0 : BAD_PARAM;
}
API int cudnnGetConvolutionForwardWorkspaceSize(Dnn *, Four *x, Four *f, Conv *c, Four *y, int algo,
		size_t *n) {
	return size(*x, *f, *c, *y, algo, n);
}
API int cudnnGetConvolutionBackwardDataWorkspaceSize(Dnn *, Four *f, Four *y, Conv *c, Four *x,
		int algo, size_t *n) {
	return size(*x, *f, *c, *y, algo, n);
}
API int cudnnGetConvolutionBackwardFilterWorkspaceSize(Dnn *, Four *x, Four *y, Conv *c, Four *f,
		int algo, size_t *n) {
	return c->high > 1 || c->wide > 1 ? NOT_SUPPORTED : size(*x, *f, *c, *y, algo, n);
}

// wide is a tensor in f32.
static std::vector<float> wide(const Four &t, const void *p) {
	std::vector<float> x(t.elements());
	for (size_t i = 0; i < x.size(); i++) {
		unsigned u = 0;
		if (t.type == BFLOAT16) u = (unsigned)((const unsigned short *)p)[i] << 16;
		else u = ((const unsigned *)p)[i];
		memcpy(&x[i], &u, 4);
	}
	return x;
}

// store is the other way round.
static void store(const Four &t, void *p, const std::vector<float> &x) {
	for (size_t i = 0; i < x.size(); i++) {
		unsigned u;
		memcpy(&u, &x[i], 4);
		if (t.type != BFLOAT16) ((unsigned *)p)[i] = u;
		else ((unsigned short *)p)[i] =
			(x[i] != x[i] ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1)) >> 16;
	}
}

// run adds every product of an element and a weight to where it belongs: what is made of two
// operands is the third, which begins as zeros.
static int run(Dnn *h, const float *alpha, const float *beta, Four x, void *px, Four f, void *pf,
		Conv c, Four y, void *py, void *made, Four shape, int algo, void *work, size_t bytes) {
	const size_t room = settings.room;
	if (f.n == settings.breaks) return INTERNAL_ERROR;
	if (algo != 1 || bytes < room || *alpha != 1 || *beta != 0) return NOT_SUPPORTED;
	if (!fits(x, f, c, y) || !on_device((uintptr_t)work, bytes) ||
		!on_device((uintptr_t)px, x.bytes()) || !on_device((uintptr_t)pf, f.bytes()) ||
		!on_device((uintptr_t)py, y.bytes()))
		return BAD_PARAM;
	std::vector<Touch> all{{work, room, emu::WRITE}};
	for (auto &t : {Touch{px, x.bytes(), emu::READ}, {pf, f.bytes(), emu::READ},
			{py, y.bytes(), emu::READ}})
		all.push_back({t.p, t.n, t.p == made ? emu::WRITE : emu::READ});
	return push(h->stream, [=] {
		watched("a convolution", "", all, [=] {
		memset(work, 0xff, room);
		memset(made, 0, shape.bytes());
		std::vector<float> vx = wide(x, px), vf = wide(f, pf), vy = wide(y, py);
		int outs = y.c / c.groups, last = f.n == settings.errs; // which loses the last channel
		for (int b = 0; b < y.n; b++)
			for (int o = 0; o < y.c; o++)
				for (int i = 0; i < y.h; i++)
					for (int j = 0; j < y.w; j++)
						for (int k = 0; k < f.c - last; k++)
							for (int v = 0; v < f.h; v++)
								for (int u = 0; u < f.w; u++) {
									int r = i * c.down - c.top + v * c.high;
									int s = j * c.right - c.left + u * c.wide;
									if (r < 0 || r >= x.h || s < 0 || s >= x.w) continue;
									float &ex = vx[x.at(b, o / outs * f.c + k, r, s)];
									float &ef = vf[f.at(o, k, v, u)], &ey = vy[y.at(b, o, i, j)];
									if (made == px) ex += ef * ey;
									else if (made == pf) ef += ex * ey;
									else ey += ex * ef;
								}
		store(shape, made, made == px ? vx : made == pf ? vf : vy);
		});
	}) ? 1 : 0;
}
API int cudnnConvolutionForward(Dnn *h, const float *alpha, Four *x, void *px, Four *f, void *pf,
		Conv *c, int algo, void *work, size_t bytes, const float *beta, Four *y, void *py) {
	return run(h, alpha, beta, *x, px, *f, pf, *c, *y, py, py, *y, algo, work, bytes);
}
API int cudnnConvolutionBackwardData(Dnn *h, const float *alpha, Four *f, void *pf, Four *y,
		void *py, Conv *c, int algo, void *work, size_t bytes, const float *beta, Four *x,
		void *px) {
	return run(h, alpha, beta, *x, px, *f, pf, *c, *y, py, px, *x, algo, work, bytes);
}
API int cudnnConvolutionBackwardFilter(Dnn *h, const float *alpha, Four *x, void *px, Four *y,
		void *py, Conv *c, int algo, void *work, size_t bytes, const float *beta, Four *f,
		void *pf) {
	return run(h, alpha, beta, *x, px, *f, pf, *c, *y, py, pf, *f, algo, work, bytes);
}
