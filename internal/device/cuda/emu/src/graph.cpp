// The stand-in's graphs: work that a stream is given while it is captured is kept, in order, and
// done when the graph is launched, as if the stream were given it then. What a thread may not do
// while it captures is refused, and so is some that it may: to record events or wait for them, and
// to launch a kernel that never ran, which a GPU may have to load first.
#include "fake.h"

thread_local Stream *capturing;

static Graph *make(const Graph &like) {
	current->graphs++;
	return new Graph(like);
}

API Result cuStreamBeginCapture_v2(Stream *s, int mode) {
	CONTEXT;
	if (!s) return INVALID_HANDLE;
	if (mode != 1) return INVALID_VALUE; // other threads go on
	if (settings.refuses == "begin") return UNSUPPORTED;
	if (capturing || s->capture) return CAPTURE_UNSUPPORTED;
	s->capture = make(Graph{current});
	capturing = s;
	return OK;
}

API Result cuStreamEndCapture(Stream *s, Graph **g) {
	*g = nullptr;
	if (!s->capture || capturing != s) return usable() ? usable() : INVALID_VALUE;
	Graph *made = s->capture;
	s->capture = nullptr;
	capturing = nullptr;
	if (made->broken || usable()) {
		delete made;
		current->graphs--;
		return usable() ? usable() : CAPTURE_INVALIDATED;
	}
	*g = made;
	return OK;
}

static const long long of_node = 4096; // bytes of device memory

API Result cuGraphInstantiateWithFlags(Graph **e, Graph *g, unsigned long long flags) {
	CONTEXT;
	if (flags) return INVALID_VALUE;
	if (!take(of_node * g->nodes.size())) return OUT_OF_MEMORY;
	*e = make(*g);
	(*e)->bytes = of_node * g->nodes.size();
	return OK;
}

API Result cuGraphUpload(Graph *, Stream *s) {
	CONTEXT;
	if (settings.refuses == "upload") return OUT_OF_MEMORY;
	return push(s, [] {});
}

API Result cuGraphLaunch(Graph *e, Stream *s) {
	CONTEXT;
	if (!e->bytes && !e->nodes.empty()) return INVALID_VALUE; // not instantiated
	for (auto &n : e->nodes)
		if (Result r = n.kernel.empty() ? push(s, n.work) : launch(s, n.kernel, n.work)) return r;
	return OK;
}

static Result destroy(Graph *g) {
	give(g->of, g->bytes);
	g->of->graphs--;
	delete g;
	return usable();
}
API Result cuGraphExecDestroy(Graph *g) { return destroy(g); }
API Result cuGraphDestroy(Graph *g) { return destroy(g); }
