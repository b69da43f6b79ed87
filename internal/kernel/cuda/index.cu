// Operations by indices: rows that are taken, and rows that are added up where they were taken
// from. What is outside a table is not a number where it is taken, and left out where it is
// added.

__device__ inline void missing(void *to, i64 i, int bytes) {
	if (bytes == 4) ((u32 *)to)[i] = 0x7fc00000;
	else if (bytes == 2) ((u16 *)to)[i] = 0x7fc0;
	else wipe(to, i, bytes);
}

// Rows of inner elements from a table of n, for each of outer parts; an index counts from first
// on. zero says what a row outside is.
extern "C" __global__ void take_rows(void *out, const void *x, const int *index, i64 outer,
	i64 count, i64 n, i64 inner, i64 first, int bytes, int zero) {
	EACH(i, outer * count * inner) {
		i64 row = i / inner, at = index[row % count] - first;
		if (at >= 0 && at < n) move(out, i, x, (row / count * n + at) * inner + i % inner, bytes);
		else if (zero) wipe(out, i, bytes);
		else missing(out, i, bytes);
	}
}

// Rows of inner elements of d added up by index, in the order of the indices, and then to kept,
// if there is one: out has n rows for each of outer parts, of which a block has GROUP rows and
// as many columns as threads.
#define GROUP 16
template <class T> __device__ void add_rows_of(T *out, const T *kept, const T *d, const int *index,
	i64 outer, i64 count, i64 n, i64 inner, i64 first, i64 tiles) {
	__shared__ float sums[GROUP][256];
	__shared__ int list[256], rows[256], warps[8];
	i64 groups = (n + GROUP - 1) / GROUP;
	int me = threadIdx.x;
	for (i64 b = blockIdx.x; b < outer * groups * tiles; b += gridDim.x) {
		i64 part = b / tiles / groups, lo = b / tiles % groups * GROUP;
		i64 column = b % tiles * 256 + me;
		for (int r = 0; r < GROUP; r++) sums[r][me] = 0;
		for (i64 start = 0; start < count; start += 256) {
			i64 row = start + me < count ? index[start + me] - first - lo : -1;
			bool mine = row >= 0 && row < GROUP && lo + row < n;
			u32 votes = __ballot_sync(0xffffffffu, mine);
			if (me % 32 == 0) warps[me / 32] = __popc(votes);
			__syncthreads();
			int at = __popc(votes & ((1u << me % 32) - 1)), total = 0;
			for (int w = 0; w < 8; w++) {
				if (w < me / 32) at += warps[w];
				total += warps[w];
			}
			if (mine) list[at] = me, rows[at] = (int)row;
			__syncthreads();
			if (column < inner)
				for (int k = 0; k < total; k++)
					sums[rows[k]][me] += d[(part * count + start + list[k]) * inner + column];
			__syncthreads();
		}
		if (column < inner)
			for (int r = 0; r < GROUP && lo + r < n; r++) {
				i64 to = (part * n + lo + r) * inner + column;
				out[to] = kept ? kept[to] + sums[r][me] : sums[r][me];
			}
	}
}
extern "C" __global__ void __launch_bounds__(256) add_rows(float *out, const float *kept,
	const float *d, const int *index, i64 outer, i64 count, i64 n, i64 inner, i64 first,
	i64 tiles) {
	add_rows_of(out, kept, d, index, outer, count, n, inner, first, tiles);
}
extern "C" __global__ void __launch_bounds__(256) add_rows_16(Half *out, const Half *kept,
	const Half *d, const int *index, i64 outer, i64 count, i64 n, i64 inner, i64 first, i64 tiles) {
	add_rows_of(out, kept, d, index, outer, count, n, inner, first, tiles);
}

// Element i is the one that an index names along an axis, of a value of other sizes: the walk is
// over the indices, with their places in the value but for the axis.
extern "C" __global__ void gather(PARAM Walk w, void *out, const void *x, const int *index, i64 n,
	i64 stride, int bytes) {
	EACH(i, w.n) {
		i64 at[1], k = index[i];
		places(w, i, at, 1);
		if (k >= 0 && k < n) move(out, i, x, at[0] + k * stride, bytes);
		else missing(out, i, bytes);
	}
}

// The elements of d whose index is this one's place along an axis, added up. The walk is over the
// result; operand 0 has the place along the axis, operand 1 that among the indices but for the
// axis, and operand 2 is below limit where there are such indices.
extern "C" __global__ void scatter(PARAM Walk w, float *out, const float *d, const int *index,
	i64 count, i64 stride, PARAM Walk inside) {
	EACH(i, w.n) {
		i64 at[2], rest = i;
		places(w, i, at, 2);
		bool covered = true;
		for (int a = (int)inside.rank - 1; a >= 0; a--) {
			covered = covered && rest % w.size[a] < inside.size[a];
			rest /= w.size[a];
		}
		float s = 0;
		if (covered)
			for (i64 k = 0; k < count; k++)
				if (index[at[1] + k * stride] == at[0]) s += d[at[1] + k * stride];
		out[i] = s;
	}
}

// One element of each row, 0 where there is no index. The row is a part of a longer one, from
// element first on.
extern "C" __global__ void take_last(float *out, const float *x, const int *index, i64 rows,
	i64 n, i64 first) {
	EACH(i, rows) {
		i64 k = index[i] - first;
		out[i] = k >= 0 && k < n ? x[i * n + k] : 0.f;
	}
}
extern "C" __global__ void put_last(float *out, const int *index, const float *d, i64 rows,
	i64 n, i64 first) {
	EACH(i, rows * n) out[i] = index[i / n] == i % n + first ? d[i / n] : 0.f;
}
extern "C" __global__ void one_hot(float *out, const int *index, i64 rows, i64 n, i64 first) {
	EACH(i, rows * n) out[i] = index[i / n] == i % n + first;
}

// Rows of a part within a whole, from a position on, that of each of some groups of the parts.
// A part that would lie outside is left out.
extern "C" __global__ void put_at(void *whole, const void *part, const int *position, i64 outer,
	i64 size, i64 n, i64 inner, i64 each, int bytes) {
	EACH(i, outer * n * inner) {
		i64 o = i / inner / n, from = position[o / each];
		if (from >= 0 && from + n <= size)
			move(whole, (o * size + from) * inner + i % (n * inner), part, i, bytes);
	}
}
extern "C" __global__ void slice_at(void *part, const void *whole, const int *position, i64 outer,
	i64 size, i64 n, i64 inner, i64 each, int bytes) {
	EACH(i, outer * n * inner) {
		i64 o = i / inner / n, from = position[o / each];
		if (from >= 0 && from + n <= size)
			move(part, i, whole, (o * size + from) * inner + i % (n * inner), bytes);
		else missing(part, i, bytes);
	}
}

// The cosine and the sine of every angle, in the order of places and then of pairs. A thread has one
// pair, whose rate it computes once, at some places.
extern "C" __global__ void rotary_angles(float2 *out, const int *positions, const double *rates,
	i64 places, i64 half, i64 several, float base, int back) {
	const i64 each = 16;
	EACH(i, (places + each - 1) / each * half) {
		i64 k = i % half, first = i / half * each;
		double rate = rates ? rates[k] : pow64(base, -2. * k / (2 * half));
		for (i64 place = first; place < first + each && place < places; place++) {
			double position = several ? positions[place] : positions[0] + (double)place;
			Turn t = sincos64(position * rate);
			out[place * half + k] = make_float2((float)t.cos, (float)(back ? -t.sin : t.sin));
		}
	}
}
// Pairs of a row's first elements, turned by their angles, by a warp; the others stay.
template <class T> __device__ void rotary_of(T *out, const T *x, const float2 *angles, i64 rows,
	i64 length, i64 heads, i64 width, i64 half, i64 each, int interleaved) {
	Team t = team(0);
	for (i64 row = t.first; row < rows; row += t.step) {
		const float2 *turns = angles + (row / each * length + row / heads % length) * half;
		i64 at = row * width;
		for (i64 k = t.lane; k < width - half; k += t.size) {
			if (k >= half) {
				out[at + k + half] = x[at + k + half];
				continue;
			}
			float2 turn = turns[k];
			i64 first = at + (interleaved ? 2 * k : k), second = first + (interleaved ? 1 : half);
			float a = x[first], b = x[second];
			out[first] = a * turn.x - b * turn.y;
			out[second] = b * turn.x + a * turn.y;
		}
	}
}
extern "C" __global__ void __launch_bounds__(256) rotary(float *out, const float *x,
	const float2 *angles, i64 rows, i64 length, i64 heads, i64 width, i64 half, i64 each,
	int interleaved) {
	rotary_of(out, x, angles, rows, length, heads, width, half, each, interleaved);
}
extern "C" __global__ void __launch_bounds__(256) rotary_16(Half *out, const Half *x,
	const float2 *angles, i64 rows, i64 length, i64 heads, i64 width, i64 half, i64 each,
	int interleaved) {
	rotary_of(out, x, angles, rows, length, heads, width, half, each, interleaved);
}
