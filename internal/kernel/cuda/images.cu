// Norms over batches, pooling, and images of another size.

// The part of a channel that a team looks at: planes lo to hi−1 of its images.
// Of each channel's parts: count, mean, and squared differences from it, as three numbers.
template <class T> __device__ void batch_parts_of(Parts p, float *out, const T *x, i64 c, i64 s,
	int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < c * p.parts; r += t.step) {
		i64 ch = r / p.parts, lo = p.lo(r), hi = p.hi(r);
		float sum = 0, squares = 0, count = (float)(hi - lo);
		for (i64 i = lo + t.lane; i < hi; i += t.size) sum += x[(i / s * c + ch) * s + i % s];
		float mean = sum_of(t, sum) / count;
		for (i64 i = lo + t.lane; i < hi; i += t.size) {
			float d = x[(i / s * c + ch) * s + i % s] - mean;
			squares = fmaf(d, d, squares);
		}
		squares = sum_of(t, squares);
		if (t.lane == 0) out[2 * r] = mean, out[2 * r + 1] = squares;
	}
}
extern "C" __global__ void __launch_bounds__(256) batch_parts(Parts p, float *out, const float *x,
	i64 c, i64 s, int wide) {
	batch_parts_of(p, out, x, c, s, wide);
}
extern "C" __global__ void __launch_bounds__(256) batch_parts_16(Parts p, float *out, const Half *x,
	i64 c, i64 s, int wide) {
	batch_parts_of(p, out, x, c, s, wide);
}
// The channel of an element, of planes of s: without a division of 64 bits if there is no need.
__device__ __forceinline__ i64 channel_of(i64 i, i64 n, i64 c, i64 s) {
	if (n <= 0xffffffffll) return (u32)i / (u32)s % (u32)c;
	return i / s % c;
}
__device__ __forceinline__ double inverse(float variance, float eps) {
	return 1 / sqrt((double)variance + eps);
}
// Parts are joined one after the other (Chan, Golub and LeVeque 1979). factor is what differences
// from the mean are multiplied by.
extern "C" __global__ void batch_moments(Parts p, float *mean, float *variance, float *factor,
	const float *part, const float *scale, i64 c, float eps) {
	EACH(ch, c) {
		double count = 0, m = 0, squares = 0;
		for (i64 k = 0; k < p.parts; k++) {
			double n = (double)(p.hi(k) - p.lo(k)), all = count + n;
			double delta = part[2 * (ch * p.parts + k)] - m;
			m += delta * n / all;
			squares += part[2 * (ch * p.parts + k) + 1] + delta * delta * count * n / all;
			count = all;
		}
		mean[ch] = (float)m, variance[ch] = (float)(squares / count);
		factor[ch] = scale[ch] * (float)inverse(variance[ch], eps);
	}
}
template <class T> __device__ void batch_norm_of(T *out, const T *x, const float *bias,
	const float *mean, const float *factor, i64 n, i64 c, i64 s) {
	EACH(i, n) {
		i64 ch = channel_of(i, n, c, s);
		out[i] = fmaf(x[i] - mean[ch], factor[ch], bias[ch]);
	}
}
extern "C" __global__ void batch_norm(float *out, const float *x, const float *bias,
	const float *mean, const float *factor, i64 n, i64 c, i64 s) {
	batch_norm_of(out, x, bias, mean, factor, n, c, s);
}
extern "C" __global__ void batch_norm_16(Half *out, const Half *x, const float *bias,
	const float *mean, const float *factor, i64 n, i64 c, i64 s) {
	batch_norm_of(out, x, bias, mean, factor, n, c, s);
}
// Of each channel's parts Σ d and Σ d·(x−mean).
template <class T> __device__ void batch_grad_parts_of(Parts p, float *out, const T *x, const T *d,
	const float *mean, i64 c, i64 s, int wide) {
	Team t = team(wide);
	for (i64 r = t.first; r < c * p.parts; r += t.step) {
		i64 ch = r / p.parts;
		float sum = 0, along = 0;
		for (i64 i = p.lo(r) + t.lane; i < p.hi(r); i += t.size) {
			i64 at = (i / s * c + ch) * s + i % s;
			sum += d[at];
			along = fmaf(x[at] - mean[ch], d[at], along);
		}
		sum = sum_of(t, sum), along = sum_of(t, along);
		if (t.lane == 0) out[2 * r] = sum, out[2 * r + 1] = along;
	}
}
extern "C" __global__ void __launch_bounds__(256) batch_grad_parts(Parts p, float *out,
	const float *x, const float *d, const float *mean, i64 c, i64 s, int wide) {
	batch_grad_parts_of(p, out, x, d, mean, c, s, wide);
}
extern "C" __global__ void __launch_bounds__(256) batch_grad_parts_16(Parts p, float *out,
	const Half *x, const Half *d, const float *mean, i64 c, i64 s, int wide) {
	batch_grad_parts_of(p, out, x, d, mean, c, s, wide);
}
// What the gradient of an element needs of its channel: 1/√variance, and the means of d and of d
// times the normalised elements.
struct Slopes {
	float inverse, mean, along;
};
extern "C" __global__ void batch_grad_sums(Parts p, float *dscale, float *dbias, Slopes *slopes,
	const float *part, const float *variance, i64 c, float eps) {
	EACH(ch, c) {
		double sum = 0, along = 0;
		for (i64 k = 0; k < p.parts; k++) {
			sum += part[2 * (ch * p.parts + k)];
			along += part[2 * (ch * p.parts + k) + 1];
		}
		double inv = inverse(variance[ch], eps);
		dscale[ch] = (float)(along * inv), dbias[ch] = (float)sum;
		float count = (float)p.n;
		slopes[ch] = Slopes{(float)inv, dbias[ch] / count, dscale[ch] / count};
	}
}
template <class T> __device__ void batch_norm_grad_of(T *out, const T *x, const T *d,
	const float *scale, const float *mean, const Slopes *slopes, i64 n, i64 c, i64 s) {
	EACH(i, n) {
		i64 ch = channel_of(i, n, c, s);
		Slopes of = slopes[ch];
		float factor = scale[ch] * of.inverse, y = (x[i] - mean[ch]) * of.inverse;
		out[i] = factor * (d[i] - of.mean - y * of.along);
	}
}
extern "C" __global__ void batch_norm_grad(float *out, const float *x, const float *d,
	const float *scale, const float *mean, const Slopes *slopes, i64 n, i64 c, i64 s) {
	batch_norm_grad_of(out, x, d, scale, mean, slopes, n, c, s);
}
extern "C" __global__ void batch_norm_grad_16(Half *out, const Half *x, const Half *d,
	const float *scale, const float *mean, const Slopes *slopes, i64 n, i64 c, i64 s) {
	batch_norm_grad_of(out, x, d, scale, mean, slopes, n, c, s);
}

// A window that moves over images of h×w elements, to oh×ow places.
struct Window {
	i64 height, width, stride_h, stride_w, top, left, h, w, oh, ow;
};
__device__ __forceinline__ i64 first_of(i64 i, i64 stride, i64 pad) {
	return i * stride - pad > 0 ? i * stride - pad : 0;
}
__device__ __forceinline__ i64 end_of(i64 i, i64 stride, i64 pad, i64 size, i64 most) {
	return i * stride - pad + size < most ? i * stride - pad + size : most;
}
// What a mean divides a window by.
__device__ inline float share_of(const Window &f, i64 i, i64 j) {
	i64 rows = end_of(i, f.stride_h, f.top, f.height, f.h) - first_of(i, f.stride_h, f.top);
	i64 columns = end_of(j, f.stride_w, f.left, f.width, f.w) - first_of(j, f.stride_w, f.left);
	return 1.f / (float)(rows * columns);
}
template <class T> __device__ void window_sum_of(Window f, T *out, const T *x, i64 n, int mean) {
	EACH(p, n) {
		i64 plane = p / (f.oh * f.ow), i = p / f.ow % f.oh, j = p % f.ow;
		float s = 0;
		i64 bottom = end_of(i, f.stride_h, f.top, f.height, f.h);
		i64 right = end_of(j, f.stride_w, f.left, f.width, f.w);
		for (i64 y = first_of(i, f.stride_h, f.top); y < bottom; y++)
			for (i64 u = first_of(j, f.stride_w, f.left); u < right; u++)
				s += x[(plane * f.h + y) * f.w + u];
		out[p] = mean ? s * share_of(f, i, j) : s;
	}
}
extern "C" __global__ void window_sum(Window f, float *out, const float *x, i64 n, int mean) {
	window_sum_of(f, out, x, n, mean);
}
extern "C" __global__ void window_sum_16(Window f, Half *out, const Half *x, i64 n, int mean) {
	window_sum_of(f, out, x, n, mean);
}
// The windows that have row, or column, at: from the first whose end is past it.
__device__ __forceinline__ i64 since(i64 at, i64 stride, i64 pad, i64 size) {
	i64 from = at + pad - size + 1;
	return from > 0 ? (from + stride - 1) / stride : 0;
}
__device__ __forceinline__ i64 until(i64 at, i64 stride, i64 pad, i64 count) {
	i64 end = (at + pad) / stride + 1;
	return end < count ? end : count;
}
template <class T> __device__ void window_spread_of(Window f, T *out, const T *d, i64 n, int mean) {
	EACH(p, n) {
		i64 plane = p / (f.h * f.w), y = p / f.w % f.h, x = p % f.w;
		float s = 0;
		i64 last = until(y, f.stride_h, f.top, f.oh), right = until(x, f.stride_w, f.left, f.ow);
		for (i64 i = since(y, f.stride_h, f.top, f.height); i < last; i++)
			for (i64 j = since(x, f.stride_w, f.left, f.width); j < right; j++) {
				float v = d[(plane * f.oh + i) * f.ow + j];
				s += mean ? v * share_of(f, i, j) : v;
			}
		out[p] = s;
	}
}
extern "C" __global__ void window_spread(Window f, float *out, const float *d, i64 n, int mean) {
	window_spread_of(f, out, d, n, mean);
}
extern "C" __global__ void window_spread_16(Window f, Half *out, const Half *d, i64 n, int mean) {
	window_spread_of(f, out, d, n, mean);
}

// A float's number in the order of floats, NaN last.
__device__ __forceinline__ int order_of(float v) {
	int b = __float_as_int(v);
	return is_nan(v) ? 0x7fffffff : b ^ (b >> 31 & 0x7fffffff);
}
// The largest of each window, the first of equals, and its place in the window; NaN is larger
// than all numbers, and +0 than −0.
template <class T> __device__ void max_pool_of(Window f, T *out, u8 *places, const T *x, i64 n) {
	EACH(p, n) {
		i64 plane = p / (f.oh * f.ow), top = p / f.ow % f.oh * f.stride_h - f.top;
		i64 left = p % f.ow * f.stride_w - f.left, best = -1;
		int most = 0;
		float value = 0;
		for (i64 k = 0; k < f.height * f.width; k++) {
			i64 y = top + k / f.width, u = left + k % f.width;
			if (y < 0 || y >= f.h || u < 0 || u >= f.w) continue;
			float v = x[(plane * f.h + y) * f.w + u];
			int order = order_of(v);
			if (best < 0 || order > most) best = k, most = order, value = v;
		}
		out[p] = value, places[p] = (u8)best;
	}
}
extern "C" __global__ void max_pool(Window f, float *out, u8 *places, const float *x, i64 n) {
	max_pool_of(f, out, places, x, n);
}
extern "C" __global__ void max_pool_16(Window f, Half *out, u8 *places, const Half *x, i64 n) {
	max_pool_of(f, out, places, x, n);
}
template <class T> __device__ void max_pool_grad_of(Window f, T *out, const u8 *places, const T *d,
	i64 n) {
	EACH(p, n) {
		i64 plane = p / (f.h * f.w), y = p / f.w % f.h, x = p % f.w;
		float s = 0;
		i64 last = until(y, f.stride_h, f.top, f.oh), right = until(x, f.stride_w, f.left, f.ow);
		for (i64 i = since(y, f.stride_h, f.top, f.height); i < last; i++)
			for (i64 j = since(x, f.stride_w, f.left, f.width); j < right; j++) {
				i64 at = (plane * f.oh + i) * f.ow + j;
				i64 place = (y - i * f.stride_h + f.top) * f.width + x - j * f.stride_w + f.left;
				if (places[at] == place) s += d[at];
			}
		out[p] = s;
	}
}
extern "C" __global__ void max_pool_grad(Window f, float *out, const u8 *places, const float *d,
	i64 n) {
	max_pool_grad_of(f, out, places, d, n);
}
extern "C" __global__ void max_pool_grad_16(Window f, Half *out, const u8 *places, const Half *d,
	i64 n) {
	max_pool_grad_of(f, out, places, d, n);
}
extern "C" __global__ void max_pool_pick(Window f, float *out, const u8 *places, const float *x,
	i64 n) {
	EACH(p, n) {
		i64 plane = p / (f.oh * f.ow), k = places[p];
		i64 y = p / f.ow % f.oh * f.stride_h - f.top + k / f.width;
		i64 u = p % f.ow * f.stride_w - f.left + k % f.width;
		bool inside = y >= 0 && y < f.h && u >= 0 && u < f.w;
		out[p] = inside ? x[(plane * f.h + y) * f.w + u] : infinity() - infinity();
	}
}

// Windows with gaps in planes of three axes, the first of which may have one element: the largest
// of each, the first of equals, and its place in the plane.
struct Box {
	i64 size[3], stride[3], dilation[3], before[3], in[3], out[3];
};
extern "C" __global__ void max_pool_nd(PARAM Box b, float *out, int *places, const float *x,
	i64 n) {
	EACH(p, n) {
		i64 window = p % (b.out[0] * b.out[1] * b.out[2]), plane = b.in[0] * b.in[1] * b.in[2];
		i64 d0 = window / b.out[2] / b.out[1] * b.stride[0] - b.before[0];
		i64 h0 = window / b.out[2] % b.out[1] * b.stride[1] - b.before[1];
		i64 w0 = window % b.out[2] * b.stride[2] - b.before[2], best = -1;
		const float *from = x + p / (b.out[0] * b.out[1] * b.out[2]) * plane;
		int most = 0;
		for (i64 k = 0; k < b.size[0] * b.size[1] * b.size[2]; k++) {
			i64 d = d0 + k / b.size[2] / b.size[1] * b.dilation[0];
			i64 h = h0 + k / b.size[2] % b.size[1] * b.dilation[1];
			i64 w = w0 + k % b.size[2] * b.dilation[2];
			if (d < 0 || d >= b.in[0] || h < 0 || h >= b.in[1] || w < 0 || w >= b.in[2]) continue;
			i64 at = (d * b.in[1] + h) * b.in[2] + w;
			int rank = order_of(from[at]);
			if (best < 0 || rank > most) best = at, most = rank;
		}
		out[p] = from[best], places[p] = (int)best;
	}
}

// Where element i of a side lies among m elements: lo with weight 1−part and hi with part.
struct Between {
	i64 lo, hi;
	float part;
};
__device__ inline Between between(i64 i, double ratio, i64 m) {
	double at = (i + .5) * ratio - .5;
	at = at < 0 ? 0 : at > m - 1 ? m - 1 : at;
	i64 lo = (i64)at;
	return Between{lo, lo + 1 < m ? lo + 1 : m - 1, (float)(at - lo)};
}
extern "C" __global__ void bilinear(float *out, const float *x, i64 n, i64 h, i64 w, i64 oh,
	i64 ow) {
	EACH(p, n) {
		const float *plane = x + p / (oh * ow) * h * w;
		Between v = between(p / ow % oh, (double)h / oh, h), u = between(p % ow, (double)w / ow, w);
		const float *top = plane + v.lo * w, *bottom = plane + v.hi * w;
		float a = fmaf(v.part, bottom[u.lo], top[u.lo] * (1 - v.part));
		float b = fmaf(v.part, bottom[u.hi], top[u.hi] * (1 - v.part));
		out[p] = (1 - u.part) * a + u.part * b;
	}
}
// What an element weighs in another.
__device__ __forceinline__ float weight(const Between &b, i64 at) {
	return (b.lo == at ? 1 - b.part : 0.f) + (b.hi == at ? b.part : 0.f);
}
// The first and last elements of a side of n in which element at may weigh.
__device__ __forceinline__ i64 reach(double at, double ratio, i64 n) {
	double i = at / ratio;
	return i < 0 ? 0 : i > n ? n : (i64)i;
}
extern "C" __global__ void bilinear_grad(float *out, const float *d, i64 n, i64 h, i64 w, i64 oh,
	i64 ow) {
	double rows = (double)h / oh, columns = (double)w / ow;
	EACH(p, n) {
		const float *plane = d + p / (h * w) * oh * ow;
		i64 y = p / w % h, x = p % w;
		i64 lo = y == 0 ? 0 : reach(y - 1., rows, oh);
		i64 left = x == 0 ? 0 : reach(x - 1., columns, ow);
		i64 hi = y == h - 1 ? oh : reach(y + 2., rows, oh - 1) + 1;
		i64 right = x == w - 1 ? ow : reach(x + 2., columns, ow - 1) + 1;
		float s = 0;
		for (i64 i = lo; i < hi; i++) {
			float v = weight(between(i, rows, h), y), row = 0;
			if (v == 0) continue;
			for (i64 j = left; j < right; j++) {
				float u = weight(between(j, columns, w), x);
				if (u != 0) row = fmaf(u, plane[i * ow + j], row);
			}
			s = fmaf(v, row, s);
		}
		out[p] = s;
	}
}
