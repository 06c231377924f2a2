//! Decides when the answer to a message becomes an event stream: as soon as another message precedes it.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use super::outbox::Outbox;
use base::outbound::LocalBoxFuture;

/// An answer in progress, and the messages before it.
pub struct Answering<T> {
    answer: LocalBoxFuture<'static, T>,
    outbox: Rc<Outbox>,
    is_over: bool,
}

impl<T> Answering<T> {
    pub fn new(answer: LocalBoxFuture<'static, T>, outbox: Rc<Outbox>) -> Self {
        Self {
            answer,
            outbox,
            is_over: false,
        }
    }

    /// The answer, if it is complete before any message. `None`: the answer is a stream.
    pub async fn begin(&mut self) -> Option<T> {
        poll_fn(|context| match self.answer.as_mut().poll(context) {
            Poll::Ready(answer) if self.outbox.has_started() => {
                self.is_over = true;
                drop(answer);
                Poll::Ready(None)
            }
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if self.outbox.has_started() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// The next events. The work continues only while the client reads.
    pub async fn next(&mut self) -> Option<String> {
        poll_fn(|context| {
            let waiting = self.outbox.take();
            if waiting.is_some() || self.is_over {
                return Poll::Ready(waiting);
            }
            // The last event is the answer, which is in the outbox, too.
            self.is_over = self.answer.as_mut().poll(context).is_ready();
            match self.outbox.take() {
                None if !self.is_over => Poll::Pending,
                events => Poll::Ready(events),
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::wait_for;

    /// An answer that is sent after these messages, with a pause before each.
    fn answering(messages: &'static [&'static str]) -> Answering<u16> {
        let outbox = Rc::new(Outbox::default());
        let sender = Rc::clone(&outbox);
        let work = async move {
            for message in messages {
                sender.push(&(*message).into());
                let mut has_paused = false;
                poll_fn(|context| {
                    if std::mem::replace(&mut has_paused, true) {
                        return Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
            if sender.has_started() {
                sender.finish("\"answer\"");
            }
            200
        };
        Answering::new(Box::pin(work), outbox)
    }

    #[test]
    fn an_answer_without_messages_is_not_a_stream() {
        assert_eq!(wait_for(answering(&[]).begin()), Some(200));
    }

    #[test]
    fn an_answer_after_messages_is_the_last_event_of_a_stream() {
        let mut answering = answering(&["one", "two"]);
        assert_eq!(wait_for(answering.begin()), None);
        let mut events = String::new();
        while let Some(more) = wait_for(answering.next()) {
            events.push_str(&more);
        }
        let sent: Vec<&str> = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        assert_eq!(sent, ["\"one\"", "\"two\"", "\"answer\""]);
    }
}
