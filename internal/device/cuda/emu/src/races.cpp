// What the watcher is told of streams. Clocks are advanced when work is given, so that what has no
// event between is found whether it met or not.
#include "fake.h"

static std::mutex clocks;
static emu::Clock host(1);
static std::mutex running; // work that touches memory, one after the other
static thread_local const emu::Work *doing;

std::function<void()> dated(Stream *s, std::function<void()> work) {
	if (!settings.races) return work;
	std::lock_guard<std::mutex> g(clocks);
	emu::join(s->clock, host);
	if (s->clock.size() <= s->number) s->clock.resize(s->number + 1);
	s->clock[s->number]++;
	emu::Work w{s->number, s->clock, "", ""};
	return [=] {
		doing = &w;
		work();
		doing = nullptr;
	};
}

emu::Clock date(Stream *s) {
	std::lock_guard<std::mutex> g(clocks);
	return s->clock;
}

void follows(Stream *s, const emu::Clock &c) {
	std::lock_guard<std::mutex> g(clocks);
	emu::join(s ? s->clock : host, c);
}

bool watched(const std::string &name, const std::string &args, const std::vector<Touch> &touches,
		const std::function<void()> &work) {
	if (!settings.races) return work(), true;
	std::lock_guard<std::mutex> g(running);
	emu::Work w;
	if (doing) {
		w = *doing;
	} else {
		std::lock_guard<std::mutex> g(clocks);
		host[0]++;
		w.clock = host;
	}
	w.name = name, w.args = args;
	emu::begin(w);
	for (auto &t : touches)
		if (!emu::touch(t.p, t.n, t.kind))
			return fault(LAUNCH_FAILED, name + ": " + emu::watcher()->error), false;
	work();
	return true;
}

void known(uintptr_t p, size_t n, emu::Memory m) {
	std::lock_guard<std::mutex> g(running);
	if (settings.races) emu::own(p, n, m);
}

void unknown(uintptr_t p) {
	std::lock_guard<std::mutex> g(running);
	if (settings.races) emu::disown(p);
}
