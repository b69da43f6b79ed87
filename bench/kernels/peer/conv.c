/* oneDNN: convolution forward and backward. The library chooses its layouts; with
 * operands in NCHW, the conversions to and from them are part of the time. */
#include "peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { forward, backward_data, backward_weights };
enum { source, weights, destination, tensors };

struct tensor {
	dnnl_memory_t plain, own; /* the same where the library's layout is the plain one */
	dnnl_primitive_t convert;
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t primitive;
static struct tensor tensor[tensors];
static int kind, converting;
static const char *failed;

#define TRY(call)                          \
	do                                 \
		if ((call) != dnnl_success) \
			failed = #call;    \
	while (0)

static int output(void) { return kind == forward ? destination : kind == backward_data ? source : weights; }

void describe(char *text, size_t size)
{
	const dnnl_version_t *v = dnnl_version();
	omp_set_num_threads(threads);
	TRY(dnnl_engine_create(&engine, dnnl_cpu, 0));
	TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
	snprintf(text, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

static dnnl_primitive_desc_t choose(dnnl_memory_desc_t *any, const dnnl_dims_t strides, const dnnl_dims_t dilates,
	const dnnl_dims_t pad)
{
	dnnl_convolution_desc_t desc, hint_desc;
	dnnl_primitive_desc_t pd = NULL, hint = NULL;
	TRY(dnnl_dilated_convolution_forward_desc_init(&hint_desc, dnnl_forward_training, dnnl_convolution_direct, &any[source],
		&any[weights], NULL, &any[destination], strides, dilates, pad, pad));
	TRY(dnnl_primitive_desc_create(&hint, &hint_desc, NULL, engine, NULL));
	if (kind == forward)
		return hint;
	if (kind == backward_data)
		TRY(dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &any[source], &any[weights],
			&any[destination], strides, dilates, pad, pad));
	else
		TRY(dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &any[source], &any[weights], NULL,
			&any[destination], strides, dilates, pad, pad));
	TRY(dnnl_primitive_desc_create(&pd, &desc, NULL, engine, hint));
	dnnl_primitive_desc_destroy(hint);
	return pd;
}

static dnnl_primitive_t conversion(dnnl_memory_t from, dnnl_memory_t to)
{
	const dnnl_memory_desc_t *src, *dst;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t p = NULL;
	dnnl_memory_get_memory_desc(from, &src);
	dnnl_memory_get_memory_desc(to, &dst);
	TRY(dnnl_reorder_primitive_desc_create(&pd, src, engine, dst, engine, NULL));
	TRY(dnnl_primitive_create(&p, pd));
	dnnl_primitive_desc_destroy(pd);
	return p;
}

static void place(int i, const dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *own)
{
	struct tensor *t = &tensor[i];
	size_t bytes = dnnl_memory_desc_get_size(own);
	float *x = operand(i, dnnl_memory_desc_get_size(plain) / sizeof(float));
	if (i == output())
		result = x, results = dnnl_memory_desc_get_size(plain) / sizeof(float);
	TRY(dnnl_memory_create(&t->plain, plain, engine, x));
	t->own = t->plain;
	if (dnnl_memory_desc_equal(plain, own))
		return;
	TRY(dnnl_memory_create(&t->own, own, engine, operand(tensors + i, bytes / sizeof(float))));
	t->convert = i == output() ? conversion(t->own, t->plain) : conversion(t->plain, t->own);
}

static void forget(void)
{
	for (int i = 0; i < tensors; i++) {
		struct tensor *t = &tensor[i];
		if (t->convert)
			dnnl_primitive_destroy(t->convert);
		if (t->own != t->plain)
			dnnl_memory_destroy(t->own);
		if (t->plain)
			dnnl_memory_destroy(t->plain);
	}
	if (primitive)
		dnnl_primitive_destroy(primitive);
	memset(tensor, 0, sizeof tensor);
	primitive = NULL;
}

const char *prepare(const char *name, const long *v, int count)
{
	if (strcmp(name, "conv") != 0 || count != 9)
		return "want conv kind convert batch in size out filter stride pad";
	forget();
	kind = v[0], converting = v[1];
	long n = v[2], in = v[3], size = v[4], out = v[5], filter = v[6], stride = v[7], pad = v[8];
	long after = (size + 2 * pad - filter) / stride + 1;
	dnnl_dims_t dims[tensors] = {{n, in, size, size}, {out, in, filter, filter}, {n, out, after, after}};
	dnnl_dims_t strides = {stride, stride}, dilates = {0, 0}, pads = {pad, pad};
	dnnl_memory_desc_t plain[tensors], any[tensors];
	for (int i = 0; i < tensors; i++) {
		TRY(dnnl_memory_desc_init_by_tag(&plain[i], 4, dims[i], dnnl_f32, dnnl_abcd));
		TRY(dnnl_memory_desc_init_by_tag(&any[i], 4, dims[i], dnnl_f32, dnnl_format_tag_any));
	}
	dnnl_primitive_desc_t pd = choose(any, strides, dilates, pads);
	TRY(dnnl_primitive_create(&primitive, pd));
	dnnl_query_t query[3][tensors] = {
		{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
		{dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
		{dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
	};
	for (int i = 0; i < tensors; i++)
		place(i, &plain[i], dnnl_primitive_desc_query_md(pd, query[kind][i], 0));
	dnnl_primitive_desc_destroy(pd);
	return failed;
}

static void convert(int i)
{
	struct tensor *t = &tensor[i];
	if (!t->convert)
		return;
	int out = i == output();
	dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, out ? t->own : t->plain}, {DNNL_ARG_TO, out ? t->plain : t->own}};
	TRY(dnnl_primitive_execute(t->convert, stream, 2, args));
}

void launch(void)
{
	static const int arg[3][tensors] = {
		{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
		{DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
		{DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
	};
	dnnl_exec_arg_t args[tensors];
	for (int i = 0; i < tensors; i++) {
		args[i].arg = arg[kind][i];
		args[i].memory = tensor[i].own;
		if (converting && i != output())
			convert(i);
	}
	TRY(dnnl_primitive_execute(primitive, stream, tensors, args));
	if (converting)
		convert(output());
	dnnl_stream_wait(stream);
}
