package captures

import (
	"errors"
	"testing"
	"time"
)

func begin(t *testing.T, id uint64) *Capture {
	t.Helper()
	made, err := Begin(func() (uint64, error) { return id, nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func counted(count *int) func() func() {
	return func() func() {
		*count++
		return func() { *count-- }
	}
}

func TestKeptHandles(t *testing.T) {
	if Active() {
		t.Fatal("a capture is open before any began")
	}
	var kept, other int
	first, second := begin(t, 1), begin(t, 2)
	for i := 0; i < 3; i++ {
		Keep(1, &kept, counted(&kept))
	}
	Keep(2, &other, counted(&other))
	Keep(3, &other, counted(&other))
	if kept != 1 || other != 1 || !Active() {
		t.Errorf("%d and %d are kept", kept, other)
	}
	Keep(2, first, first.Hold) // a launch of the first one's graph
	first.End()
	Keep(1, &other, counted(&other))
	first.Release()
	second.End()
	if kept != 1 || other != 1 || Active() {
		t.Errorf("%d and %d are kept after the end", kept, other)
	}
	second.Release()
	if kept != 0 || other != 0 {
		t.Errorf("%d and %d are kept after the last release", kept, other)
	}
}

func TestCapturesThatDoNotBegin(t *testing.T) {
	wanted := errors.New("as asked")
	if made, err := Begin(func() (uint64, error) { return 0, wanted }); made != nil || err != wanted || Active() {
		t.Errorf("%v, %v", made, err)
	}
}

// A wait for the device and an open capture exclude each other.
func TestWhileNone(t *testing.T) {
	const soon = 20 * time.Millisecond
	first := begin(t, 1)
	called, goOn, done := make(chan bool), make(chan bool), make(chan bool)
	go WhileNone(func() {
		called <- true
		<-goOn
	})
	never := func(what string, event chan bool) {
		t.Helper()
		select {
		case <-event:
			t.Fatal(what)
		case <-time.After(soon):
		}
	}
	never("a capture is open", called)
	second := begin(t, 2) // the waiting one does not block it
	first.End()
	never("the second capture is open", called)
	second.End()
	<-called
	go func() {
		third, _ := Begin(func() (uint64, error) { return 3, nil })
		third.End()
		done <- true
	}()
	never("a capture began beside the call", done)
	goOn <- true
	<-done
}
