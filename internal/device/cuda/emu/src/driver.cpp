// A stand-in for libcuda.so.1 that runs on the CPU: streams are threads, so work that lacks
// a wait really races; what the driver forbids is refused, and so is some that it allows:
// asynchronous copies of host memory that is not pinned.
#include "fake.h"

#include <dlfcn.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

Settings settings;

// Pinned is a range of the host's memory that was pinned for one context, or for all.
struct Pinned {
	size_t n;
	Context *by;
	bool all;
};

static std::mutex mu;   // guards all tables below, and those of contexts
static std::map<int, Context> contexts; // by device
static std::map<uintptr_t, Pinned> pinned;
static int retained, made; // contexts, and streams since there was one
static std::mutex texts;   // guards errors' texts
thread_local Context *current;
static const size_t page = 4096;

static std::string env(const char *name, const char *otherwise) {
	const char *v = getenv((std::string("EMU_") + name).c_str());
	return v && *v ? v : otherwise;
}

// The range that begins at an address or before, or the end.
template <class T>
static typename std::map<uintptr_t, T>::const_iterator before(const std::map<uintptr_t, T> &ranges,
		uintptr_t p) {
	auto it = ranges.upper_bound(p);
	return it == ranges.begin() ? ranges.end() : --it;
}

static bool allocated(Context *c, uintptr_t p, size_t n) {
	auto it = before(c->dev, p);
	return it != c->dev.end() && p + n <= it->first + it->second;
}

static bool locked(Context *c, uintptr_t p, size_t n) {
	auto it = before(pinned, p);
	return it != pinned.end() && p + n <= it->first + it->second.n &&
		(it->second.all || it->second.by == c);
}

bool on_device(uintptr_t p, size_t n) {
	std::lock_guard<std::mutex> g(mu);
	return allocated(current, p, n);
}

void fault(int code, const std::string &why) {
	std::lock_guard<std::mutex> g(texts);
	if (current->sticky) return;
	current->text = why;
	current->sticky = code;
}

Result usable() { return current ? current->sticky.load() : INVALID_CONTEXT; }

// ---- streams and events ----------------------------------------------------------------

Stream::Stream(Context *of, int n)
	: of(of), random(settings.seed + n), number(n + 1), thread([this] { run(); }) {}

void Stream::run() {
	current = of;
	for (;;) {
		std::function<void()> work;
		{
			std::unique_lock<std::mutex> l(m);
			busy = false;
			cv.notify_all();
			cv.wait(l, [&] { return stop || !queue.empty(); });
			if (queue.empty()) return;
			work = std::move(queue.front());
			queue.pop_front();
			busy = true;
		}
		if (settings.jitter) usleep(random() % settings.jitter);
		if (!of->sticky) work();
	}
}

void Stream::wait() {
	std::unique_lock<std::mutex> l(m);
	cv.wait(l, [&] { return queue.empty() && !busy; });
}

static Result put(Stream *s, Node n) {
	// the default stream is not for asynchronous work here
	if (!s || s->of != current) return INVALID_HANDLE;
	if (s->capture) {
		if (capturing != s) return CAPTURE_WRONG_THREAD;
		if (settings.refuses == "work") s->capture->broken = true;
		if (s->capture->broken) return CAPTURE_UNSUPPORTED;
		s->capture->nodes.push_back(std::move(n));
		return OK;
	}
	std::lock_guard<std::mutex> l(s->m);
	s->queue.push_back(dated(s, std::move(n.work)));
	s->cv.notify_all();
	return OK;
}

Result push(Stream *s, std::function<void()> work) { return put(s, Node{std::move(work), ""}); }

Result launch(Stream *s, const std::string &kernel, std::function<void()> work) {
	if (s && !s->capture && ++current->launched == current->fail)
		work = [=] { fault(LAUNCH_FAILED, "kernel " + kernel + ": as the test wants"); };
	return put(s, Node{std::move(work), kernel});
}

API Result cuStreamCreate(Stream **s, unsigned flags) {
	CONTEXT;
	if (flags != 1) return INVALID_VALUE; // must not wait for the default stream
	std::lock_guard<std::mutex> g(mu);
	*s = new Stream(current, made++);
	current->streams.push_back(*s);
	return OK;
}

static std::condition_variable released; // streams that threads waited for, with mu

API Result cuStreamDestroy_v2(Stream *s) {
	if (!current) return INVALID_CONTEXT;
	s->wait();
	follows(nullptr, date(s));
	{
		std::unique_lock<std::mutex> g(mu);
		auto &all = s->of->streams;
		for (auto &x : all)
			if (x == s) {
				x = all.back();
				all.pop_back();
				break;
			}
		released.wait(g, [&] { return !s->awaited; }); // by a session beside
	}
	{
		std::lock_guard<std::mutex> l(s->m);
		s->stop = true;
		s->cv.notify_all();
	}
	s->thread.join();
	delete s;
	return current->sticky;
}

struct Event {
	Context *of;
	std::mutex m;
	std::condition_variable cv;
	uint64_t recorded = 0, reached = 0;
	emu::Clock clock; // of what was recorded last
	double at = 0;
	bool timed;
};
typedef std::shared_ptr<Event> Ref; // work in queues outlives the handle

static double now() {
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec * 1e3 + t.tv_nsec / 1e6) * settings.hurry;
}

// An event of a context that has failed never happens.
static void await(const Ref &e, uint64_t n) {
	std::unique_lock<std::mutex> l(e->m);
	while (e->reached < n && !current->sticky && !e->of->sticky)
		e->cv.wait_for(l, std::chrono::milliseconds(20));
}

static uint64_t latest(const Ref &e) {
	std::lock_guard<std::mutex> l(e->m);
	return e->recorded;
}

static emu::Clock dated(const Ref &e) {
	std::lock_guard<std::mutex> l(e->m);
	return e->clock;
}

API Result cuEventCreate(Ref **e, unsigned flags) {
	CONTEXT;
	*e = new Ref(std::make_shared<Event>());
	(**e)->of = current;
	(**e)->timed = !(flags & 2);
	return OK;
}

API Result cuEventDestroy_v2(Ref *e) {
	delete e;
	return usable();
}

API Result cuEventRecord(Ref *h, Stream *s) {
	UNCAPTURED;
	Ref e = *h;
	if (e->of != current) return INVALID_HANDLE;
	uint64_t n;
	{
		std::lock_guard<std::mutex> l(e->m);
		n = ++e->recorded;
		e->clock = date(s);
	}
	return push(s, [=] {
		std::lock_guard<std::mutex> l(e->m);
		e->reached = std::max(e->reached, n);
		e->at = now();
		e->cv.notify_all();
	});
}

API Result cuStreamWaitEvent(Stream *s, Ref *h, unsigned) {
	UNCAPTURED;
	Ref e = *h;
	uint64_t n = latest(e);
	follows(s, dated(e));
	return push(s, [=] { await(e, n); });
}

API Result cuEventQuery(Ref *e) {
	UNCAPTURED;
	std::lock_guard<std::mutex> l((*e)->m);
	if ((*e)->reached < (*e)->recorded) return NOT_READY;
	follows(nullptr, (*e)->clock);
	return OK;
}

API Result cuEventSynchronize(Ref *e) {
	UNCAPTURED;
	emu::Clock c = dated(*e);
	await(*e, latest(*e));
	follows(nullptr, c);
	return current->sticky ? current->sticky : (*e)->of->sticky;
}

API Result cuEventElapsedTime(float *ms, Ref *a, Ref *b) {
	CONTEXT;
	for (Ref *e : {a, b}) {
		std::lock_guard<std::mutex> l((*e)->m);
		if (!(*e)->timed || !(*e)->recorded) return INVALID_HANDLE;
		if ((*e)->reached < (*e)->recorded) return NOT_READY;
	}
	*ms = (float)((*b)->at - (*a)->at);
	return OK;
}

// ---- the device ------------------------------------------------------------------------

API Result cuInit(unsigned) { return atoi(env("INIT", "0").c_str()); }
API Result cuDriverGetVersion(int *v) {
	*v = atoi(env("VERSION", "13000").c_str());
	return OK;
}
API Result cuDeviceGetCount(int *n) {
	*n = atoi(env("COUNT", "1").c_str());
	return OK;
}
API Result cuDeviceGet(int *d, int i) {
	int n;
	cuDeviceGetCount(&n);
	*d = i;
	return i < 0 || i >= n ? INVALID_DEVICE : OK;
}
API Result cuDeviceGetName(char *p, int n, int device) {
	if (device) snprintf(p, n, "emulated %d", device);
	else snprintf(p, n, "emulated");
	return OK;
}
API Result cuDeviceGetPCIBusId(char *p, int n, int device) {
	snprintf(p, n, "0000:%02X:00.0", 0x3b + device);
	return OK;
}
// The number of a list that is a device's; the last is that of all others, too.
static long long number(int device, const char *name, const char *otherwise) {
	std::string list = env(name, otherwise);
	for (size_t comma; device-- > 0 && (comma = list.find(',')) != std::string::npos;)
		list.erase(0, comma + 1);
	return atoll(list.c_str());
}
static long long memory(int device) { return number(device, "MEM", "536870912"); }
API Result cuDeviceTotalMem_v2(size_t *n, int device) {
	*n = memory(device);
	return OK;
}
static const int resident = 2048; // threads of a multiprocessor at once

API Result cuDeviceGetAttribute(int *v, int a, int) {
	static const std::map<int, int> values{{75, 9}, {76, 0}, {16, 4}, {39, resident}, {40, 2}, {97, 227 << 10}};
	auto it = values.find(a);
	if (it == values.end()) return INVALID_VALUE;
	*v = it->second;
	return OK;
}

static Context *of(int device) {
	auto it = contexts.find(device);
	if (it == contexts.end()) {
		it = contexts.try_emplace(device).first;
		it->second.device = device;
	}
	return &it->second;
}

// ended takes back what a context has beside what it was asked for.
static void ended(Context *c) {
	retained--;
	c->retained--;
	c->used -= settings.context;
	if (c->loaded) c->used -= settings.first;
	if (c->threads) c->used -= 4 * resident * settings.local;
	c->loaded = c->threads = false;
}

API Result cuDevicePrimaryCtxRetain(Context **c, int device) {
	std::lock_guard<std::mutex> g(mu);
	if (retained++ == 0) {
		settings = {atoi(env("JITTER_US", "0").c_str()), atoi(env("SEED", "1").c_str()),
			atoi(env("ORDER", "0").c_str()), env("DIR", "."),
			env("CXX", "g++ -std=c++17 -O1 -Wall -Wno-unused -fno-strict-aliasing"),
			env("CAPTURE", ""), atoi(env("CONV_LACKS", "0").c_str()),
			atoi(env("CONV_FAILS", "0").c_str()), atoi(env("CONV_BREAKS", "0").c_str()),
			atoi(env("CONV_ERRS", "0").c_str()), atoll(env("CONV_ROOM", "4096").c_str()), atoll(env("HANDLE", "0").c_str()),
			atoll(env("FIRST", "0").c_str()), env("CHOOSY", "") != "",
			atoll(env("CONTEXT", "0").c_str()), atoll(env("MODULE", "0").c_str()),
			atoll(env("LOCAL", "0").c_str()), atoi(env("LOSES", "0").c_str()),
			atof(env("HURRY", "1").c_str()),
			atoll(env("PINS", "0").c_str()), env("RACES", "") != "",
			env("UNBOUND", "") != ""};
		made = 0;
	}
	*c = of(device);
	if ((*c)->retained++ == 0) {
		(*c)->memory = memory(device);
		(*c)->fail = number(device, "FAIL", "0");
		(*c)->launched = 0;
		(*c)->breaks = number(device, "PEERFAIL", "0");
		(*c)->copied = 0;
		(*c)->reached.clear();
		(*c)->used += settings.context;
		if ((*c)->used > (*c)->memory) return ended(*c), OUT_OF_MEMORY;
	}
	return OK;
}

// The last release ends the context, and its error with it, unless a library holds the context.
API Result cuDevicePrimaryCtxRelease_v2(int device) {
	std::lock_guard<std::mutex> g(mu);
	Context *c = of(device);
	if (c->retained == 0) return INVALID_CONTEXT;
	if (c->retained > 1) return retained--, c->retained--, OK;
	size_t pins = 0;
	for (auto &range : pinned) pins += range.second.by == c;
	if (!c->dev.empty() || pins || !c->streams.empty() || c->graphs) {
		fprintf(stderr, "emulator: the context of device %d is left with %zu allocations, %zu "
			"pinned ranges, %zu streams and %d graphs\n", device, c->dev.size(), pins,
			c->streams.size(), c->graphs);
		abort();
	}
	ended(c);
	if (env("STICKY", "").empty()) c->sticky = 0;
	return OK;
}

API Result cuCtxSetCurrent(Context *c) {
	if (c && settings.unbound) return INVALID_CONTEXT;
	current = c;
	return OK;
}

API Result cuCtxSynchronize() {
	UNCAPTURED;
	std::vector<Stream *> all;
	{
		std::lock_guard<std::mutex> g(mu);
		all = current->streams;
		for (auto s : all) s->awaited++;
	}
	for (auto s : all) {
		emu::Clock c = date(s);
		s->wait();
		follows(nullptr, c);
		std::lock_guard<std::mutex> g(mu);
		s->awaited--;
		released.notify_all();
	}
	return current->sticky;
}

API Result cuGetErrorName(int e, const char **p) {
	static const std::map<int, const char *> names{{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"}, {100, "CUDA_ERROR_NO_DEVICE"},
		{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
		{ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
		{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		{NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
		{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
		{NOT_READY, "CUDA_ERROR_NOT_READY"},
		{PEER_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"}, {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
		{UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
		{CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
		{CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
		{CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"}};
	auto it = names.find(e);
	*p = it == names.end() ? nullptr : it->second;
	return *p ? OK : INVALID_VALUE;
}

API Result cuGetErrorString(int e, const char **p) {
	static thread_local std::string s;
	std::lock_guard<std::mutex> g(texts);
	s = current && current->sticky && e == current->sticky ? current->text : "emulated";
	*p = s.c_str();
	return OK;
}

// ---- memory ----------------------------------------------------------------------------

API Result cuMemGetInfo_v2(size_t *f, size_t *t) {
	CONTEXT;
	std::lock_guard<std::mutex> g(mu);
	*t = current->memory;
	*f = current->memory - current->used;
	return OK;
}

bool take(long long bytes) {
	std::lock_guard<std::mutex> g(mu);
	if (bytes > current->memory - current->used) return false;
	current->used += bytes;
	return true;
}

void give(Context *of, long long bytes) {
	std::lock_guard<std::mutex> g(mu);
	of->used -= bytes;
}

// load takes what a library loads for the first product of a context, which keeps it.
bool load() {
	static std::mutex one;
	std::lock_guard<std::mutex> l(one);
	if (!current->loaded && !take(settings.first)) return false;
	current->loaded = true;
	return true;
}

long long taken(int device) {
	std::lock_guard<std::mutex> g(mu);
	auto it = contexts.find(device);
	return it == contexts.end() || !it->second.retained ? -1 : it->second.used;
}

// has takes what threads of kernels have for themselves, of all that run at once, for good.
static bool has(Context *c) {
	std::lock_guard<std::mutex> g(mu);
	long long bytes = 4 * resident * settings.local;
	if (!c->threads && bytes > c->memory - c->used) return false;
	if (!c->threads) c->used += bytes;
	c->threads = true;
	return true;
}

static size_t mapped(size_t n) { return (n + page - 1) / page * page; }

// Pages that nobody may touch are on both sides; what is taken is not a number.
API Result cuMemAlloc_v2(uint64_t *p, size_t n) {
	UNCAPTURED;
	if (!n) return INVALID_VALUE;
	std::lock_guard<std::mutex> g(mu);
	if ((long long)n > current->memory - current->used) return OUT_OF_MEMORY;
	char *b = (char *)mmap(0, mapped(n) + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED || mprotect(b + page, mapped(n), PROT_READ | PROT_WRITE))
		return OUT_OF_MEMORY;
	memset(b + page, 0xff, mapped(n));
	*p = (uintptr_t)b + page;
	current->dev[*p] = n;
	known(*p, n, emu::DEVICE);
	current->used += n;
	return OK;
}

API Result cuMemFree_v2(uint64_t p) {
	if (!current) return INVALID_CONTEXT;
	if (!current->sticky) cuCtxSynchronize();
	std::lock_guard<std::mutex> g(mu);
	auto it = current->dev.find(p);
	if (it == current->dev.end()) return INVALID_VALUE;
	unknown(p);
	munmap((char *)p - page, mapped(it->second) + 2 * page);
	current->used -= it->second;
	current->dev.erase(it);
	return current->sticky;
}

API Result cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
	UNCAPTURED;
	if (!n) return INVALID_VALUE;
	std::lock_guard<std::mutex> g(mu);
	size_t sum = n;
	for (auto &range : pinned) {
		sum += range.second.n;
		if ((uintptr_t)p < range.first + range.second.n && range.first < (uintptr_t)p + n)
			return ALREADY_REGISTERED;
	}
	if (settings.pins && (long long)sum > settings.pins) return OUT_OF_MEMORY;
	pinned[(uintptr_t)p] = {n, current, (flags & 1) != 0};
	known((uintptr_t)p, n, emu::HOST);
	return OK;
}

API Result cuMemHostUnregister(void *p) {
	if (!current) return INVALID_CONTEXT;
	std::lock_guard<std::mutex> g(mu);
	if (!pinned.erase((uintptr_t)p)) return INVALID_VALUE;
	unknown((uintptr_t)p);
	return current->sticky;
}

static bool move(void *dst, const void *src, size_t n) {
	return watched("a copy", "", {{src, n, emu::READ}, {dst, n, emu::WRITE}},
		[=] { memmove(dst, src, n); });
}

// set is a fill by bytes. Where accesses are watched, bytes of ones count as not written: that is
// what tests fill memory with that is to be written.
static bool set(uint64_t d, unsigned char v, size_t n) {
	return watched("a fill", "", {{(void *)d, n, emu::WRITE}}, [=] {
		memset((void *)d, v, n);
		if (v == 0xff && settings.races) emu::forget(d, n);
	});
}

// One registered range, one copy: CUDA refuses one that spans two.
static Result copy(uintptr_t dst, bool to_device, uintptr_t src, size_t n, Stream *s) {
	{
		std::lock_guard<std::mutex> g(mu);
		if (!allocated(current, to_device ? dst : src, n) ||
			!locked(current, to_device ? src : dst, n))
			return INVALID_VALUE;
	}
	return push(s, [=] { move((void *)dst, (void *)src, n); });
}

API Result cuMemcpyHtoDAsync_v2(uint64_t d, const void *h, size_t n, Stream *s) {
	CONTEXT;
	return copy(d, true, (uintptr_t)h, n, s);
}

API Result cuMemcpyDtoHAsync_v2(void *h, uint64_t d, size_t n, Stream *s) {
	CONTEXT;
	return copy((uintptr_t)h, false, d, n, s);
}

API Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, Stream *s) {
	CONTEXT;
	if (!on_device(to, n) || !on_device(from, n)) return INVALID_VALUE;
	if (to < from + n && from < to + n) return INVALID_VALUE; // which CUDA leaves open
	return push(s, [=] { move((void *)to, (void *)from, n); });
}

// What is not reached directly is refused, where CUDA would copy it by way of the host. Work that
// failed on another GPU leaves its memory as it is.
API Result cuMemcpyPeerAsync(uint64_t to, Context *of, uint64_t from, Context *by, size_t n,
		Stream *s) {
	CONTEXT;
	{
		std::lock_guard<std::mutex> g(mu);
		if (of != current || by != of && !of->reached.count(by) || !allocated(of, to, n) ||
			!allocated(by, from, n))
			return INVALID_VALUE;
		if (++of->copied == of->breaks)
			return push(s, [=] { fault(LAUNCH_FAILED, "a peer copy: as the test wants"); });
	}
	return push(s, [=] { move((void *)to, (void *)from, n); });
}

API Result cuDeviceCanAccessPeer(int *can, int device, int other) {
	*can = device != other && env("PEERS", "1") != "0";
	return OK;
}

API Result cuCtxEnablePeerAccess(Context *other, unsigned flags) {
	CONTEXT;
	if (flags || other == current || env("PEERS", "1") == "0") return INVALID_VALUE;
	std::lock_guard<std::mutex> g(mu);
	return current->reached.insert(other).second ? OK : PEER_ENABLED;
}

API Result cuMemcpyHtoD_v2(uint64_t d, const void *h, size_t n) {
	UNCAPTURED;
	if (!on_device(d, n)) return INVALID_VALUE;
	return move((void *)d, h, n) ? OK : current->sticky.load();
}

API Result cuMemcpyDtoH_v2(void *h, uint64_t d, size_t n) {
	UNCAPTURED;
	if (!on_device(d, n)) return INVALID_VALUE;
	return move(h, (void *)d, n) ? OK : current->sticky.load();
}

API Result cuMemsetD8_v2(uint64_t d, unsigned char v, size_t n) {
	UNCAPTURED;
	if (!on_device(d, n)) return INVALID_VALUE;
	return set(d, v, n) ? OK : current->sticky.load();
}

API Result cuMemsetD8Async(uint64_t d, unsigned char v, size_t n, Stream *s) {
	CONTEXT;
	if (!on_device(d, n)) return INVALID_VALUE;
	return push(s, [=] { set(d, v, n); });
}

API Result cuMemsetD32Async(uint64_t d, unsigned v, size_t n, Stream *s) {
	CONTEXT;
	if (d % 4 || !on_device(d, 4 * n)) return INVALID_VALUE;
	return push(s, [=] {
		watched("a fill", "", {{(void *)d, 4 * n, emu::WRITE}},
			[=] { std::fill_n((unsigned *)d, n, v); });
	});
}

// ---- modules and kernels ---------------------------------------------------------------

typedef int (*Entry)(const char *, size_t, const unsigned *, size_t, int, char *, size_t);
struct Function {
	Context *of;
	Entry entry;
	std::string name;
	int shared = 48 << 10;
	bool ran = false;
};
struct Module {
	Context *of;
	void *library;
	std::vector<std::unique_ptr<Function>> functions;
};

// The machine code is a shared object behind its size; see nvrtc.cpp.
API Result cuModuleLoadData(Module **m, const char *image) {
	UNCAPTURED;
	if (memcmp(image, "EMUCUBIN", 8) && memcmp(image, "EMUPTX..", 8)) return NO_BINARY;
	uint64_t size;
	memcpy(&size, image + 8, 8);
	char path[] = "/tmp/gomem-emu-XXXXXX";
	int fd = mkstemp(path);
	if (fd < 0) return NO_BINARY;
	bool whole = write(fd, image + 16, size) == (ssize_t)size;
	close(fd);
	void *library = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
	unlink(path);
	if (!library) return NO_BINARY;
	auto watch = (void (*)(emu::Watcher *))dlsym(library, "emu_watch");
	if (!watch == settings.races) return NO_BINARY; // compiled for the other way
	if (watch) watch(emu::watcher());
	if (!take(settings.module)) return OUT_OF_MEMORY;
	*m = new Module{current, library, {}};
	return OK;
}

API Result cuModuleUnload(Module *m) {
	if (!current) return INVALID_CONTEXT;
	if (!current->sticky) cuCtxSynchronize();
	give(m->of, settings.module);
	delete m; // the library stays: threads may have memory of its own
	return current->sticky;
}

API Result cuModuleGetFunction(Function **f, Module *m, const char *name) {
	CONTEXT;
	Entry e = (Entry)dlsym(m->library, (std::string(name) + "__emu").c_str());
	if (!e) return NOT_FOUND;
	for (auto &known : m->functions)
		if (known->name == name) return *f = known.get(), OK;
	m->functions.push_back(std::make_unique<Function>(Function{m->of, e, name}));
	*f = m->functions.back().get();
	return OK;
}

API Result cuFuncGetAttribute(int *v, int attribute, Function *) {
	CONTEXT;
	if (attribute != 3) return INVALID_VALUE;
	*v = (int)settings.local;
	return OK;
}

API Result cuFuncSetAttribute(Function *f, int attribute, int v) {
	CONTEXT;
	if (attribute != 8 || v < 0 || v > 227 << 10) return INVALID_VALUE;
	f->shared = v;
	return OK;
}

API Result cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		unsigned by, unsigned bz, unsigned shared, Stream *s, void **params, void **extra) {
	CONTEXT;
	if (f->of != current) return INVALID_HANDLE;
	if (params || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
		return INVALID_VALUE;
	if (!gx || !gy || !gz || gx > 0x7fffffff || gy > 65535 || gz > 65535 || !bx || !by || !bz ||
		bz > 64 || (uint64_t)bx * by * bz > 1024 || (int)shared > f->shared)
		return INVALID_VALUE;
	std::string args((char *)extra[1], *(size_t *)extra[3]);
	std::vector<unsigned> dims{gx, gy, gz, bx, by, bz};
	if (capturing && !f->ran) return capturing->capture->broken = true, CAPTURE_UNSUPPORTED;
	if (!has(current)) return OUT_OF_MEMORY;
	f->ran = true;
	return launch(s, f->name, [=] {
		watched("kernel " + f->name, args, {}, [&] {
			char err[512];
			if (f->entry(args.data(), args.size(), dims.data(), shared, settings.order, err,
					sizeof err))
				fault(LAUNCH_FAILED, "kernel " + f->name + ": " + err);
		});
	});
}
