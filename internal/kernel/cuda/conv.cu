// Convolutions as products by tiles: images of c channels in groups, filters of kh×kw.
struct Conv {
	i64 batch, groups, c, h, w, o, oh, ow, kh, kw; // c and o are those of a group
	i64 stride_h, stride_w, dil_h, dil_w, top, left;
	// The element of image b's channel that tap (y, x) has at result (i, j); −1 outside.
	__device__ i64 at(i64 i, i64 j, i64 y, i64 x) const {
		i64 v = i * stride_h - top + y * dil_h, u = j * stride_w - left + x * dil_w;
		return v >= 0 && v < h && u >= 0 && u < w ? v * w + u : -1;
	}
	// The result to which an element (v, u) comes by tap (y, x); −1 if there is none.
	__device__ i64 to(i64 v, i64 u, i64 y, i64 x) const {
		i64 i = v + top - y * dil_h, j = u + left - x * dil_w;
		if (i < 0 || j < 0 || i % stride_h || j % stride_w) return -1;
		i /= stride_h, j /= stride_w;
		return i < oh && j < ow ? i * ow + j : -1;
	}
};

template <class T> __device__ void convolve(const Conv &s, T *out, const T *x, const T *f) {
	i64 k = s.c * s.kh * s.kw, size = s.oh * s.ow, n = s.batch * size;
	i64 down = (s.o + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down;
		tile<true, false>(block / across % down * TILE, block % across * TILE, s.o, n, 0, k,
			[=](i64 i, i64 d) { return f[(g * s.o + i) * k + d]; },
			[=](i64 d, i64 j) {
				i64 p = j % size, tap = d % (s.kh * s.kw);
				i64 at = s.at(p / s.ow, p % s.ow, tap / s.kw, tap % s.kw);
				i64 plane = (j / size * s.groups + g) * s.c + d / (s.kh * s.kw);
				return at < 0 ? 0.f : x[plane * s.h * s.w + at];
			},
			[=](i64 i, i64 j, float v) {
				out[((j / size * s.groups + g) * s.o + i) * size + j % size] = v;
			});
	}
}

extern "C" __global__ void __launch_bounds__(256) conv_forward(Conv s, float *out, const float *x,
	const float *f) {
	convolve(s, out, x, f);
}
extern "C" __global__ void __launch_bounds__(256) conv_forward_16(Conv s, Half *out, const Half *x,
	const Half *f) {
	convolve(s, out, x, f);
}

template <class T> __device__ void to_images(const Conv &s, T *out, const T *d, const T *f) {
	i64 taps = s.kh * s.kw, k = s.o * taps, size = s.h * s.w, n = s.batch * size;
	i64 down = (s.c + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down;
		tile<false, false>(block / across % down * TILE, block % across * TILE, s.c, n, 0, k,
			[=](i64 i, i64 e) { return f[((g * s.o + e / taps) * s.c + i) * taps + e % taps]; },
			[=](i64 e, i64 j) {
				i64 p = j % size, tap = e % taps;
				i64 at = s.to(p / s.w, p % s.w, tap / s.kw, tap % s.kw);
				i64 plane = (j / size * s.groups + g) * s.o + e / taps;
				return at < 0 ? 0.f : d[plane * s.oh * s.ow + at];
			},
			[=](i64 i, i64 j, float v) {
				out[((j / size * s.groups + g) * s.c + i) * size + j % size] = v;
			});
	}
}

extern "C" __global__ void __launch_bounds__(256) conv_input(Conv s, float *out, const float *d,
	const float *f) {
	to_images(s, out, d, f);
}
extern "C" __global__ void __launch_bounds__(256) conv_input_16(Conv s, Half *out, const Half *d,
	const Half *f) {
	to_images(s, out, d, f);
}

// The sum over results of all images is in parts of so many, which are added up afterwards.
template <class T> __device__ void to_filters(const Conv &s, float *out, const T *x, const T *d,
	i64 per, i64 parts) {
	i64 taps = s.kh * s.kw, n = s.c * taps, size = s.oh * s.ow, k = s.batch * size;
	i64 down = (s.o + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
	for (i64 block = blockIdx.x; block < parts * s.groups * down * across; block += gridDim.x) {
		i64 g = block / across / down % s.groups, part = block / across / down / s.groups;
		i64 end = part * per + per < k ? part * per + per : k;
		float *to = out + part * s.groups * s.o * n;
		tile<true, true>(block / across % down * TILE, block % across * TILE, s.o, n, part * per,
			end,
			[=](i64 i, i64 e) {
				return d[((e / size * s.groups + g) * s.o + i) * size + e % size];
			},
			[=](i64 e, i64 j) {
				i64 p = e % size, tap = j % taps;
				i64 at = s.at(p / s.ow, p % s.ow, tap / s.kw, tap % s.kw);
				i64 plane = (e / size * s.groups + g) * s.c + j / taps;
				return at < 0 ? 0.f : x[plane * s.h * s.w + at];
			},
			[=](i64 i, i64 j, float v) { to[(g * s.o + i) * n + j] = v; });
	}
}
extern "C" __global__ void __launch_bounds__(256) conv_filter(Conv s, float *out, const float *x,
	const float *d, i64 per, i64 parts) {
	to_filters(s, out, x, d, per, parts);
}
extern "C" __global__ void __launch_bounds__(256) conv_filter_16(Conv s, float *out, const Half *x,
	const Half *d, i64 per, i64 parts) {
	to_filters(s, out, x, d, per, parts);
}
