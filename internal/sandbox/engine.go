package sandbox

import (
	"net/http"
	"time"

	"mobilegateway/shared/msisdn"
)

// incoming is an operator call that has passed the checks.
type incoming struct {
	kind        string
	key         string
	part        string // where the key stands in the request, for SVC0005
	party       string // who pays: the last four digits decide
	fingerprint string // of the body without otp_code and notif_url, and of the headers that route
	callbackURL string
	otp         string // echoed, never kept
	// fill writes what the request says into a new transaction, with the answer that it gets when it is applied.
	fill func(t *transaction)
}

// reply is what a call gets, and what has to happen before.
type reply struct {
	answer answer
	wait   <-chan struct{} // closed when the call is applied; nil: nothing to wait for
	delay  time.Duration   // unkindness: answered so much later
	early  *transaction    // its callbacks go out first
}

// receive is the one way in for charge, payment and SMS: it decides under the lock, so that of any number of parallel
// calls under a key one is applied, and answers without it.
func (s *Sandbox) receive(w http.ResponseWriter, r *http.Request, in incoming) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		cut(w)
		return
	}
	t := s.book.find(in.kind, in.key)
	out := s.decide(t, in)
	t.noteCall(s.now(), out.answer)
	s.save(t)
	s.mu.Unlock()
	s.config.Logf("sandbox: %s %s %s", in.kind, in.key, out.answer.word())
	if out.early != nil {
		s.flush(r.Context(), out.early)
	}
	if !s.pause(r, out) {
		cut(w)
		return
	}
	out.answer.write(w)
}

// pause waits for what an answer waits for; false when the sandbox closes or the client is gone. What is to be applied
// later is applied all the same.
func (s *Sandbox) pause(r *http.Request, out reply) bool {
	wait := out.wait
	if out.delay > 0 {
		late := make(chan struct{})
		s.config.After(out.delay, func() { close(late) })
		wait = late
	}
	if wait == nil {
		return true
	}
	select {
	case <-wait:
		return true
	case <-r.Context().Done():
		return false
	case <-s.ctx.Done():
		return false
	}
}

// decide is called with the lock held.
func (s *Sandbox) decide(t *transaction, in incoming) reply {
	if t.State == received {
		return reply{answer: inFlight(in.key, in.part)}
	}
	s.takeTurn(t)
	m, scripted := s.nextScripted(in.kind, in.key)
	if t.State != absent {
		return s.again(t, in, m, scripted)
	}
	b := behaviourOf(in.kind, msisdn.LastFour(in.party))
	if !scripted && b.First != "" {
		m, _ = mannerOf(b.First)
		scripted = true
	}
	out := reply{}
	if !scripted {
		m, out.delay = s.drawManner(t)
	}
	if !m.applies {
		out.answer = *m.spoilt
		return out
	}
	s.begin(t, in, m)
	if m.later {
		out.wait = t.wait()
	} else {
		s.apply(t)
		if t.held {
			out.early = t
		}
	}
	out.answer = s.trueAnswer(t, in.otp)
	if m.spoilt != nil {
		out.answer = *m.spoilt
	}
	return out
}

// again answers a repeat: the truth about what was applied, unless a script or unkindness spoils it. Nothing happens.
func (s *Sandbox) again(t *transaction, in incoming, m manner, scripted bool) reply {
	out := reply{}
	if !scripted {
		m, out.delay = s.drawManner(t)
	}
	switch {
	case m.spoilt != nil:
		out.answer = *m.spoilt
	case t.State == refused:
		out.answer = t.Answer
	case t.Kind == kindPayment && t.Fingerprint != in.fingerprint:
		out.answer = duplicate(in.key, in.part, "")
	case t.Kind == kindSMS:
		out.answer = duplicate(in.key, in.part, t.Answer.Location)
	default:
		if in.callbackURL != "" {
			t.CallbackURL = in.callbackURL // the address is signed anew when its key is rotated
		}
		out.answer = s.trueAnswer(t, in.otp)
	}
	return out
}

// begin writes down what was asked, before any of it is applied.
func (s *Sandbox) begin(t *transaction, in incoming, m manner) {
	t.Fingerprint = in.fingerprint
	t.Digits = msisdn.LastFour(in.party)
	t.CreatedAt = s.now()
	t.CallbackURL = in.callbackURL
	t.OperatorID = s.uuid()
	t.Odd = m.spoilt != nil || m.later
	t.Refusal = m.refuses
	s.drawLuck(t)
	in.fill(t)
	s.book.indexPage(t)
	if m.later {
		t.State = received
		t.ApplyAt = t.CreatedAt.Add(s.config.SlowAnswer)
		s.applyLater(t)
	}
}

func (s *Sandbox) applyLater(t *transaction) {
	s.after(t.ApplyAt.Sub(s.now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.State != received {
			return
		}
		s.apply(t)
		s.release(t)
		s.save(t)
	})
}

// apply is the moment in which a call takes effect. It is called once a transaction, with the lock held.
func (s *Sandbox) apply(t *transaction) {
	b := t.behaviour()
	now := s.now()
	t.ApplyAt = time.Time{}
	t.wake()
	if b.Refusal != "" {
		t.State = refused
		t.FinalAt = now
		t.Answer = finalRefusal(b.Refusal)
		return
	}
	switch t.Kind {
	case kindCharge:
		t.State = charged
		t.happened(now)
	case kindSMS:
		t.State = accepted
		t.FinalAt = now
		t.held = b.Early
		if !b.NoEffect {
			t.happened(now)
		}
		s.tell(t, b.Tell, s.scaled(s.config.ConfirmDelay/2))
	case kindPayment:
		s.applyPayment(t, b)
	}
}

// applyPayment accepts a payment. It is applied at once, as an effect, where the first answer is spoilt (outcomes 1004,
// 1005, 1010); otherwise the effect is the money that moves when it becomes successful.
func (s *Sandbox) applyPayment(t *transaction, b behaviour) {
	t.State = pending
	if t.Odd && b.Final == successful {
		t.happened(s.now())
	}
	web := t.Payment.Channel == "web"
	switch {
	case b.Final == pending:
	case b.Early && (!web || !t.Early):
		t.held = true
		s.settle(t, b)
	case !web:
		t.SettleAt = s.now().Add(s.scaled(s.config.ConfirmDelay))
		s.settleLater(t)
	}
	// On the web channel the page decides, but for outcome 1008, whose callback comes before this very answer.
}

func (s *Sandbox) settleLater(t *transaction) {
	s.after(t.SettleAt.Sub(s.now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.State != pending || t.SettleAt.IsZero() {
			return
		}
		s.settle(t, t.behaviour())
		s.save(t)
	})
}

// settle gives a payment its final status and queues what is told about it. Money that did not move is no effect.
func (s *Sandbox) settle(t *transaction, b behaviour) {
	t.State = b.Final
	t.FinalAt = s.now()
	t.SettleAt = time.Time{}
	t.Payment.Why = b.Why
	if b.Final == successful {
		t.happened(t.FinalAt)
	} else {
		t.Effects = nil
	}
	t.wake()
	s.tell(t, b.Tell, 0)
}
