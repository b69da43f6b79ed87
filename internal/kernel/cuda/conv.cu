// Convolutions as products by tiles: images of c channels in groups, filters of kh×kw.
struct Conv {
	i64 batch, groups, c, h, w, o, oh, ow, kh, kw; // c and o are those of a group
	i64 stride_h, stride_w, dil_h, dil_w, top, left;
};

// A number that others below 2³¹ are divided by: by a product, as T. Granlund and P. L. Montgomery,
// Division by Invariant Integers using Multiplication, have it.
struct Divisor {
	int by, shift;
	u32 times;
	__device__ __forceinline__ Divisor(i64 n)
		: by(n > 0 ? (int)n : 1), shift(n > 1 ? 32 - __clz((int)n - 1) : 0) {
		times = (u32)((((u64)1 << shift) - by << 32) / by + 1);
	}
	// The quotient, and what is left of n.
	__device__ __forceinline__ int split(int &n) const {
		int q = (int)((__umulhi(times, (u32)n) + (u32)n) >> shift);
		n -= q * by;
		return q;
	}
};

// An operand whose indices are the other way round.
template <class F> struct Turned {
	F f;
	typedef typename F::Inner Outer;
	typedef typename F::Outer Inner;
	__device__ __forceinline__ Outer outer(int i) const { return f.inner(i); }
	__device__ __forceinline__ Inner inner(int d) const { return f.outer(d); }
	__device__ __forceinline__ auto get(const Outer &o, const Inner &i) const { return f.get(i, o); }
};

// A group's images, so many planes of h×w, as windows lie on them: an outer index is a result of
// an image, an inner one a tap of a channel.
template <class T> struct Windows {
	const T *at;
	i64 image, plane;
	int h, w, stride_h, stride_w, dil_h, dil_w, top, left;
	Divisor size, row, taps, tap_row;
	struct Outer {
		const T *image;
		int y, x;
	};
	struct Inner {
		i64 plane;
		int y, x;
	};
	__device__ __forceinline__ Windows(const Conv &s, const T *x, i64 g)
		: at(x + g * s.c * s.h * s.w), image(s.groups * s.c * s.h * s.w), plane(s.h * s.w),
		h((int)s.h), w((int)s.w), stride_h((int)s.stride_h), stride_w((int)s.stride_w),
		dil_h((int)s.dil_h), dil_w((int)s.dil_w), top((int)s.top), left((int)s.left),
		size(s.oh * s.ow), row(s.ow), taps(s.kh * s.kw), tap_row(s.kw) {}
	__device__ __forceinline__ Outer outer(int p) const {
		const T *from = at + size.split(p) * image;
		int y = row.split(p) * stride_h - top;
		return Outer{from, y, p * stride_w - left};
	}
	__device__ __forceinline__ Inner inner(int tap) const {
		i64 from = taps.split(tap) * plane;
		int y = tap_row.split(tap) * dil_h;
		return Inner{from, y, tap * dil_w};
	}
	__device__ __forceinline__ T get(const Outer &o, const Inner &i) const {
		int y = o.y + i.y, x = o.x + i.x;
		bool inside = y >= 0 && y < h && x >= 0 && x < w;
		return inside ? o.image[i.plane + y * w + x] : T{};
	}
};

// Results of a group, planes of oh×ow, as elements of images came to them: an outer index is an
// element of an image, an inner one a tap of a filter.
template <class T> struct Results {
	const T *at;
	i64 image, plane;
	int oh, ow, dil_h, dil_w, top, left;
	Divisor size, row, taps, tap_row, stride_h, stride_w;
	typedef typename Windows<T>::Outer Outer;
	typedef typename Windows<T>::Inner Inner;
	__device__ __forceinline__ Results(const Conv &s, const T *d, i64 g)
		: at(d + g * s.o * s.oh * s.ow), image(s.groups * s.o * s.oh * s.ow), plane(s.oh * s.ow),
		oh((int)s.oh), ow((int)s.ow), dil_h((int)s.dil_h), dil_w((int)s.dil_w), top((int)s.top),
		left((int)s.left), size(s.h * s.w), row(s.w), taps(s.kh * s.kw), tap_row(s.kw),
		stride_h(s.stride_h), stride_w(s.stride_w) {}
	__device__ __forceinline__ Outer outer(int p) const {
		const T *from = at + size.split(p) * image;
		int y = row.split(p) + top;
		return Outer{from, y, p + left};
	}
	__device__ __forceinline__ Inner inner(int tap) const {
		i64 from = taps.split(tap) * plane;
		int y = tap_row.split(tap) * dil_h;
		return Inner{from, y, tap * dil_w};
	}
	__device__ __forceinline__ T get(const Outer &o, const Inner &i) const {
		int y = o.y - i.y, x = o.x - i.x;
		if (y < 0 || x < 0) return T{};
		int v = stride_h.split(y), u = stride_w.split(x); // less what is left, a result's place
		bool inside = y == 0 && x == 0 && v < oh && u < ow;
		return inside ? o.image[i.plane + v * ow + u] : T{};
	}
};

// Elements whose place is the sum of what both indices come to.
template <class T> struct Filters { // an outer index is a channel of c, an inner one a filter's tap
	const T *at;
	i64 c;
	Divisor taps;
	typedef i64 Outer;
	__device__ __forceinline__ i64 outer(int i) const { return i * taps.by; }
	__device__ __forceinline__ i64 inner(int e) const {
		int filter = taps.split(e);
		return filter * c * taps.by + e;
	}
	__device__ __forceinline__ T get(i64 o, i64 i) const { return at[o + i]; }
};
template <class T> struct Planes { // an outer index is a plane, an inner one an element of images
	const T *at;
	i64 image;
	Divisor size;
	typedef i64 Outer;
	__device__ __forceinline__ i64 outer(int i) const { return (i64)i * size.by; }
	__device__ __forceinline__ i64 inner(int e) const {
		int n = size.split(e);
		return n * image + e;
	}
	__device__ __forceinline__ T get(i64 o, i64 i) const { return at[o + i]; }
};

// A tile's columns: elements of images of so many from the first of image on, of which there are n.
struct Across {
	i64 image;
	int from, end;
	__device__ __forceinline__ Across(i64 at, i64 size, i64 n) : image(at / size) {
		from = (int)(at - image * size);
		end = from + (int)(n - at < TILE ? n - at : TILE);
	}
};

template <class T> __device__ void convolve(const Conv &s, T *out, const T *x, const T *f) {
	i64 k = s.c * s.kh * s.kw, size = s.oh * s.ow, n = s.batch * size;
	i64 down = (s.o + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	Divisor each(size);
	for (i64 block = blockIdx.x; block < s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down;
		int m0 = (int)(block / across % down) * TILE;
		Across to(block % across * TILE, size, n);
		const T *images = x + to.image * s.groups * s.c * s.h * s.w;
		T *results = out + (to.image * s.groups + g) * s.o * size;
		tile<true, false, T>(m0, to.from, (int)s.o, to.end, 0, (int)k,
			Lines<T>{f + g * s.o * k, (int)k}, Windows<T>(s, images, g),
			[=, &s](int i, int j, float v) {
				i64 image = each.split(j);
				results[(image * s.groups * s.o + i) * size + j] = v;
			});
	}
}

extern "C" __global__ void __launch_bounds__(256) conv_forward(PARAM Conv s, float *out,
	const float *x, const float *f) {
	convolve(s, out, x, f);
}
extern "C" __global__ void __launch_bounds__(256) conv_forward_16(PARAM Conv s, Half *out,
	const Half *x, const Half *f) {
	convolve(s, out, x, f);
}

template <class T> __device__ void to_images(const Conv &s, T *out, const T *d, const T *f) {
	i64 taps = s.kh * s.kw, k = s.o * taps, size = s.h * s.w, n = s.batch * size;
	i64 down = (s.c + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	Divisor each(size);
	for (i64 block = blockIdx.x; block < s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down;
		int m0 = (int)(block / across % down) * TILE;
		Across to(block % across * TILE, size, n);
		const T *results = d + to.image * s.groups * s.o * s.oh * s.ow;
		T *images = out + (to.image * s.groups + g) * s.c * size;
		tile<false, false, T>(m0, to.from, (int)s.c, to.end, 0, (int)k,
			Filters<T>{f + g * k * s.c, s.c, taps}, Results<T>(s, results, g),
			[=, &s](int i, int j, float v) {
				i64 image = each.split(j);
				images[(image * s.groups * s.c + i) * size + j] = v;
			});
	}
}

extern "C" __global__ void __launch_bounds__(256) conv_input(PARAM Conv s, float *out,
	const float *d, const float *f) {
	to_images(s, out, d, f);
}
extern "C" __global__ void __launch_bounds__(256) conv_input_16(PARAM Conv s, Half *out,
	const Half *d, const Half *f) {
	to_images(s, out, d, f);
}

// The sum over results of all images is in parts of so many, which are added up afterwards.
template <class T> __device__ void to_filters(const Conv &s, float *out, const T *x, const T *d,
	i64 per, i64 parts) {
	i64 n = s.c * s.kh * s.kw, size = s.oh * s.ow, k = s.batch * size;
	i64 down = (s.o + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < parts * s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down % s.groups, part = block / across / down / s.groups;
		i64 image = part * per / size, end = part * per + per < k ? part * per + per : k;
		int m0 = (int)(block / across % down) * TILE, n0 = (int)(block % across) * TILE;
		const T *images = x + image * s.groups * s.c * s.h * s.w;
		const T *results = d + (image * s.groups + g) * s.o * size;
		float *to = out + (part * s.groups + g) * s.o * n;
		tile<true, true, T>(m0, n0, (int)s.o, (int)n, (int)(part * per - image * size),
			(int)(end - image * size), Planes<T>{results, s.groups * s.o * size, size},
			Turned<Windows<T>>{Windows<T>(s, images, g)},
			[=](int i, int j, float v) { to[i * n + j] = v; });
	}
}
extern "C" __global__ void __launch_bounds__(256) conv_filter(PARAM Conv s, float *out,
	const float *x, const float *d, i64 per, i64 parts) {
	to_filters(s, out, x, d, per, parts);
}
extern "C" __global__ void __launch_bounds__(256) conv_filter_16(PARAM Conv s, float *out,
	const Half *x, const Half *d, i64 per, i64 parts) {
	to_filters(s, out, x, d, per, parts);
}
