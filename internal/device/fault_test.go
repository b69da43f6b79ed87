package device_test

import (
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/internal/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func isDone(f *device.Fault) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

// TestFault: the first error stays until it is cleared, whoever asks and waits.
func TestFault(t *testing.T) {
	var f device.Fault
	first, second := errors.New("first"), errors.New("second")
	for range 3 {
		if f.Err() != nil || isDone(&f) {
			t.Fatal("there is an error from the start")
		}
		waiting := f.Done()
		f.Set(first)
		f.Set(second)
		<-waiting
		if f.Err() != first || !isDone(&f) {
			t.Fatalf("error is %v", f.Err())
		}
		f.Clear()
		f.Clear()
	}
	f.Set(second) // nobody has waited
	if f.Err() != second || !isDone(&f) {
		t.Errorf("error is %v", f.Err())
	}
}

// TestStopped: a task that fails once the device is stopped is not forgotten, only one, and
// the cause comes first.
func TestStopped(t *testing.T) {
	var f device.Fault
	cause, task := errors.New("cause"), &device.Error{Name: "a", Err: errors.New("task")}
	f.Set(cause)
	f.Set(errors.New("another cause"))
	f.Set(task)
	f.Set(&device.Error{Name: "b"})
	s, ok := errors.AsType[*device.Stopped](f.Err())
	if !ok || s.Cause != cause || s.Task != task || s.Error() != "cause" ||
		!errors.Is(s, cause) || !errors.Is(s, task) || !isDone(&f) {
		t.Errorf("error is %v", f.Err())
	}
	f.Clear()
	f.Set(task)
	f.Set(cause)
	if f.Err() != error(task) {
		t.Errorf("error is %v", f.Err())
	}
}

// TestFaultRace: of many that fail at once one wins, all see the same, and who
// waits is woken.
func TestFaultRace(t *testing.T) {
	for range 200 {
		var f device.Fault
		var all sync.WaitGroup
		seen := make([]error, 8)
		for i := range seen {
			all.Go(func() {
				if i%2 == 0 {
					f.Set(errors.New("one of many"))
				} else {
					<-f.Done()
				}
				seen[i] = f.Err()
			})
		}
		all.Wait()
		for _, err := range seen {
			if err == nil || err != f.Err() {
				t.Fatalf("%v is seen, the error is %v", err, f.Err())
			}
		}
	}
}

// TestErrorIsALine names the task, and unwraps to the cause.
func TestErrorIsALine(t *testing.T) {
	cause := errors.New("no good")
	err := error(&device.Error{Step: 3, Name: "enc/att", What: "matmul", Err: cause})
	if err.Error() != "enc/att (matmul): no good" || !errors.Is(err, cause) {
		t.Errorf("error is %v", err)
	}
}
