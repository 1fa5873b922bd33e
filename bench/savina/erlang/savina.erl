%% The programs of bench/savina in Erlang: its processes and messages, and an answer that carries the reference of its question.
%%
%% Run as `erl -noshell -pa DIRECTORY -s savina main -extra NAME`; prints the milliseconds that it takes, as heddle-savina does. The number of
%% schedulers is the caller's to choose (+S).
-module(savina).
-export([main/0]).

main() ->
    [Name] = init:get_plain_arguments(),
    Run = program(Name),
    Repetitions = case os:getenv("BENCH_QUICK") of "1" -> 1; _ -> 5 end,
    in_a_process(Run),
    Values = lists:sort([in_a_process(Run) || _ <- lists:seq(1, Repetitions)]),
    io:format("~s ~.3f~n", [Name, lists:nth(Repetitions div 2 + 1, Values)]),
    halt(0).

%% Milliseconds. Each run has a process of its own, so that none has to do with the memory of the one before.
in_a_process(Run) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        Start = erlang:monotonic_time(nanosecond),
        Run(),
        exit({took, (erlang:monotonic_time(nanosecond) - Start) / 1.0e6})
    end),
    receive
        {'DOWN', Monitor, process, Pid, {took, Took}} -> Took;
        {'DOWN', Monitor, process, Pid, Reason} ->
            io:format(standard_error, "~p~n", [Reason]),
            halt(1)
    end.

program("ping_pong") -> fun ping_pong/0;
program("counting") -> fun counting/0;
program("fork_join_throughput") -> fun fork_join_throughput/0;
program("fork_join_create") -> fun fork_join_create/0;
program("thread_ring") -> fun thread_ring/0;
program("chameneos") -> fun chameneos/0;
program("big") -> fun big/0;
program("dictionary") -> fun dictionary/0;
program("sorted_list") -> fun sorted_list/0;
program("bounded_buffer") -> fun bounded_buffer/0;
program("philosophers") -> fun philosophers/0;
program("barber") -> fun barber/0;
program("smokers") -> fun smokers/0;
program("logistic_map") -> fun logistic_map/0;
program("bank") -> fun bank/0;
program(_) ->
    io:format(standard_error, "no such program here~n", []),
    halt(77).

%% ---- what they share ----

same(_, X, X) -> ok;
same(What, Is, Should) -> exit({What, Is, Should}).

next_random(X) -> X * 16807 rem 2147483647.

work(Steps) -> work(Steps, 1).

work(0, X) -> X;
work(Steps, X) -> work(Steps - 1, next_random(X)).

times(0, _) -> ok;
times(N, Do) -> Do(), times(N - 1, Do).

%% Starts a member, whose death by an error is ours too.
start(Run) -> spawn_link(Run).

%% One to which thousands of messages are sent before it comes to receive them: they stay out of its heap, or every collection looks at them.
start_loaded(Run) -> spawn_opt(Run, [link, {message_queue_data, off_heap}]).

ask(Whom, What) ->
    Ref = make_ref(),
    Whom ! {What, {self(), Ref}},
    receive {Ref, Answer} -> Answer end.

answer({Pid, Ref}, What) -> Pid ! {Ref, What}.

%% Members that end by themselves, and say so.
start_all(Runs) ->
    Home = self(),
    [start(fun() -> Run(), Home ! {ended, self()} end) || Run <- Runs].

wait_all(Pids) -> [receive {ended, Pid} -> ok end || Pid <- Pids], ok.

%% ---- micro programs ----

ping_pong() ->
    Pids = [Pid] = start_all([fun() -> answer_pings(40000) end]),
    times(40000, fun() -> Pid ! {ping, self()}, receive pong -> ok end end),
    wait_all(Pids).

answer_pings(0) -> ok;
answer_pings(N) -> receive {ping, From} -> From ! pong, answer_pings(N - 1) end.

counting() ->
    N = 1000000,
    Pid = start_loaded(fun() -> count(0) end),
    times(N, fun() -> Pid ! add end),
    same(count, ask(Pid, total), N).

count(N) ->
    receive
        add -> count(N + 1);
        {total, From} -> answer(From, N)
    end.

fork_join_throughput() ->
    {Joined, Rounds} = {60, 10000},
    Pids = start_all([fun() -> handle(0, Rounds) end || _ <- lists:seq(1, Joined)]),
    send_rounds(0, Rounds, Pids),
    wait_all(Pids).

handle(Rounds, Rounds) -> ok;
handle(K, Rounds) ->
    work(1),
    receive {message, X} -> same(message_in_order, X, K) end,
    handle(K + 1, Rounds).

send_rounds(Rounds, Rounds, _) -> ok;
send_rounds(K, Rounds, Pids) ->
    [Pid ! {message, K} || Pid <- Pids],
    send_rounds(K + 1, Rounds, Pids).

fork_join_create() ->
    N = 40000,
    Home = self(),
    [spawn(fun() -> receive {number, X} -> Home ! {square, X * X} end end) ! {number, I} || I <- lists:seq(1, N)],
    same(sum_of_squares, sum_squares(N, 0), N * (N + 1) * (2 * N + 1) div 6).

sum_squares(0, Sum) -> Sum;
sum_squares(N, Sum) -> receive {square, X} -> sum_squares(N - 1, Sum + X) end.

thread_ring() ->
    {Ring, Hops} = {100, 100000},
    Home = self(),
    Pids = [start(fun() -> receive {next, Next} -> pass_on(I, Next, Home) end end) || I <- lists:seq(0, Ring - 1)],
    [Pid ! {next, Next} || {Pid, Next} <- lists:zip(Pids, tl(Pids) ++ [hd(Pids)])],
    hd(Pids) ! {token, Hops},
    receive {stopped, Where} -> same(where_the_token_stopped, Where, (Hops - 1) rem Ring) end,
    [Pid ! stop || Pid <- Pids].

pass_on(I, Next, Home) ->
    receive
        {token, 1} -> Home ! {stopped, I}, pass_on(I, Next, Home);
        {token, Hops} -> Next ! {token, Hops - 1}, pass_on(I, Next, Home);
        stop -> ok
    end.

chameneos() ->
    {Creatures, Meetings, Home} = {100, 200000, self()},
    Mall = start(fun() -> mall(Meetings, Creatures, none) end),
    [start(fun() -> creature(Mall, Home, I rem 3, 0) end) || I <- lists:seq(0, Creatures - 1)],
    same(meetings, lists:sum([receive {met, N} -> N end || _ <- lists:seq(1, Creatures)]), 2 * Meetings).

mall(0, 0, none) -> ok;
mall(0, Creatures, none) ->
    receive {meet, _, From} -> From ! faded, mall(0, Creatures - 1, none) end;
mall(Left, Creatures, none) ->
    receive {meet, _, From} -> mall(Left, Creatures, From) end;
mall(Left, Creatures, First) ->
    receive {meet, Colour, From} -> First ! {other, Colour, From}, mall(Left - 1, Creatures, none) end.

creature(Mall, Home, Colour, Met) ->
    Mall ! {meet, Colour, self()},
    receive
        faded -> Home ! {met, Met};
        {other, Other} -> creature(Mall, Home, complement(Colour, Other), Met + 1);
        {other, Other, From} -> From ! {other, Colour}, creature(Mall, Home, complement(Colour, Other), Met + 1)
    end.

complement(Colour, Colour) -> Colour;
complement(Colour, Other) -> 3 - Colour - Other.

big() ->
    {Processes, Pings, Home} = {120, 20000, self()},
    Pids = [start(fun() -> receive {all, All} -> pings_others(I, Pings, All, Home) end end) || I <- lists:seq(1, Processes)],
    All = list_to_tuple(Pids),
    [Pid ! {all, All} || Pid <- Pids],
    [receive done -> ok end || _ <- Pids],
    [Pid ! stop || Pid <- Pids],
    same(pings_answered, lists:sum([receive {answered, N} -> N end || _ <- Pids]), Processes * Pings).

pings_others(I, Pings, All, Home) ->
    Answered = ping_all(Pings, I, I, All, 0),
    Home ! done,
    Home ! {answered, answer_until_stop(Answered)}.

ping_all(0, _, _, _, Answered) -> Answered;
ping_all(N, I, X, All, Answered) ->
    Next = next_random(X),
    Other = 1 + Next rem (tuple_size(All) - 1),
    element(if Other < I -> Other; true -> Other + 1 end, All) ! {ping, self()},
    ping_all(N - 1, I, Next, All, answer_until_pong(Answered)).

answer_until_pong(Answered) ->
    receive
        {ping, From} -> From ! pong, answer_until_pong(Answered + 1);
        pong -> Answered
    end.

answer_until_stop(Answered) ->
    receive
        {ping, From} -> From ! pong, answer_until_stop(Answered + 1);
        stop -> Answered
    end.

%% ---- many clients, one server ----

%% Runs the clients of a server until they have ended, and answers how much the server has then.
serve(Server, Client) ->
    Pid = start(Server),
    wait_all(start_all([fun() -> Client(Pid, Seed) end || Seed <- lists:seq(1, 20)])),
    Size = ask(Pid, size),
    Pid ! stop,
    Size.

dictionary() ->
    Each = 10000,
    Size = serve(fun() -> serve_dictionary(#{}) end, fun(Pid, Seed) -> use_dictionary(Pid, Each, Seed) end),
    Written = lists:foldl(fun(Seed, Seen) -> replay_dictionary(Each, Seed, Seen) end, #{}, lists:seq(1, 20)),
    same(keys, Size, map_size(Written)).

serve_dictionary(Table) ->
    receive
        {{read, Key}, From} -> answer(From, maps:get(Key, Table, 0)), serve_dictionary(Table);
        {{write, Key, Value}, From} -> answer(From, Value), serve_dictionary(Table#{Key => Value});
        {size, From} -> answer(From, map_size(Table)), serve_dictionary(Table);
        stop -> ok
    end.

dictionary_request(X) ->
    Y = next_random(X),
    Z = next_random(Y),
    {Y rem 100 < 10, 1 + Z rem 524287, Z}.

use_dictionary(_, 0, _) -> ok;
use_dictionary(Pid, N, X) ->
    Z = case dictionary_request(X) of
        {true, Key, Next} -> same(value, ask(Pid, {write, Key, 3 * Key}), 3 * Key), Next;
        {false, Key, Next} ->
            case ask(Pid, {read, Key}) of
                0 -> Next;
                Value -> same(value, Value, 3 * Key), Next
            end
    end,
    use_dictionary(Pid, N - 1, Z).

replay_dictionary(0, _, Seen) -> Seen;
replay_dictionary(N, X, Seen) ->
    case dictionary_request(X) of
        {true, Key, Next} -> replay_dictionary(N - 1, Next, Seen#{Key => true});
        {false, _, Next} -> replay_dictionary(N - 1, Next, Seen)
    end.

sorted_list() ->
    Each = 8000,
    Size = serve(fun() -> serve_list([], 0) end, fun(Pid, Seed) -> use_list(Pid, Each, Seed, 0) end),
    Added = lists:foldl(fun(Seed, Seen) -> replay_list(Each, Seed, Seen) end, #{}, lists:seq(1, 20)),
    same(numbers, Size, map_size(Added)).

serve_list(List, Size) ->
    receive
        {{contains, Number}, From} -> answer(From, contains(Number, List)), serve_list(List, Size);
        {{add, Number}, From} ->
            case contains(Number, List) of
                1 -> answer(From, 1), serve_list(List, Size);
                0 -> answer(From, 1), serve_list(add(Number, List), Size + 1)
            end;
        {size, From} -> answer(From, Size), serve_list(List, Size);
        stop -> ok
    end.

contains(Number, [X | Rest]) when X < Number -> contains(Number, Rest);
contains(Number, [Number | _]) -> 1;
contains(_, _) -> 0.

add(Number, [X | Rest]) when X < Number -> [X | add(Number, Rest)];
add(Number, List) -> [Number | List].

list_request(X) ->
    Y = next_random(X),
    Z = next_random(Y),
    Number = Z rem 1024,
    case Y rem 100 of
        Chance when Chance < 1 -> {size, Z};
        Chance when Chance < 11 -> {{add, Number}, Z};
        _ -> {{contains, Number}, Z}
    end.

use_list(_, 0, _, _) -> ok;
use_list(Pid, N, X, Had) ->
    {Request, Next} = list_request(X),
    Answer = ask(Pid, Request),
    case Request of
        size when Answer >= Had, Answer =< 1024 -> use_list(Pid, N - 1, Next, Answer);
        {add, _} when Answer =:= 1 -> use_list(Pid, N - 1, Next, Had);
        {contains, _} when Answer =< 1 -> use_list(Pid, N - 1, Next, Had)
    end.

replay_list(0, _, Seen) -> Seen;
replay_list(N, X, Seen) ->
    case list_request(X) of
        {{add, Number}, Next} -> replay_list(N - 1, Next, Seen#{Number => true});
        {_, Next} -> replay_list(N - 1, Next, Seen)
    end.

bounded_buffer() ->
    {Sides, Each, Home} = {40, 1000, self()},
    Buffer = start(fun() -> buffer(queue:new(), 0, queue:new(), queue:new()) end),
    Pids = start_all([fun() -> produce(Buffer, 1, Each) end || _ <- lists:seq(1, Sides)] ++
                     [fun() -> Home ! {taken, consume(Buffer, Each, 0)} end || _ <- lists:seq(1, Sides)]),
    wait_all(Pids),
    Buffer ! stop,
    same(sum_of_the_items, lists:sum([receive {taken, Sum} -> Sum end || _ <- lists:seq(1, Sides)]), Sides * Each * (Each + 1) div 2).

%% The items and how many they are, the callers that want to put, and those that want to take.
buffer(Items, Count, Puts, Takes) ->
    receive
        {{put, Item}, From} when Count =:= 50 -> buffer(Items, Count, queue:in({Item, From}, Puts), Takes);
        {{put, Item}, From} -> put_item(Item, From, Items, Count, Puts, Takes);
        {take, From} when Count =:= 0 -> buffer(Items, Count, Puts, queue:in(From, Takes));
        {take, From} ->
            {{value, Item}, Rest} = queue:out(Items),
            answer(From, Item),
            case queue:out(Puts) of
                {empty, _} -> buffer(Rest, Count - 1, Puts, Takes);
                {{value, {Next, Putter}}, Others} -> put_item(Next, Putter, Rest, Count - 1, Others, Takes)
            end;
        stop -> ok
    end.

put_item(Item, From, Items, Count, Puts, Takes) ->
    answer(From, 0),
    case queue:out(Takes) of
        {empty, _} -> buffer(queue:in(Item, Items), Count + 1, Puts, Takes);
        {{value, Taker}, Others} -> answer(Taker, Item), buffer(Items, Count, Puts, Others)
    end.

produce(_, Item, Each) when Item > Each -> ok;
produce(Buffer, Item, Each) ->
    work(250),
    ask(Buffer, {put, Item}),
    produce(Buffer, Item + 1, Each).

consume(_, 0, Sum) -> Sum;
consume(Buffer, N, Sum) ->
    Item = ask(Buffer, take),
    work(250),
    consume(Buffer, N - 1, Sum + Item).

logistic_map() ->
    {Terms, Increment} = {25000, 0.0025},
    Series = [{3.46 + I * Increment, (I + 1) * Increment} || I <- lists:seq(0, 9)],
    Pids = [begin
        Computer = start(fun() -> compute(Rate) end),
        {Computer, start_loaded(fun() -> series(Term, Computer) end)}
    end || {Rate, Term} <- Series],
    times(Terms, fun() -> [Pid ! next || {_, Pid} <- Pids] end),
    [begin
        Is = ask(Pid, get),
        same(term, abs(Is - iterate(Terms, Term, Rate)) < 1.0e-9, true),
        Pid ! stop,
        Computer ! stop
    end || {{Rate, Term}, {Computer, Pid}} <- lists:zip(Series, Pids)].

next_term(Term, Rate) -> Rate * Term * (1 - Term).

iterate(0, Term, _) -> Term;
iterate(N, Term, Rate) -> iterate(N - 1, next_term(Term, Rate), Rate).

compute(Rate) ->
    receive
        {{next, Term}, From} -> answer(From, next_term(Term, Rate)), compute(Rate);
        stop -> ok
    end.

series(Term, Computer) ->
    receive
        next -> series(ask(Computer, {next, Term}), Computer);
        {get, From} -> answer(From, Term), series(Term, Computer);
        stop -> ok
    end.

bank() ->
    {Count, N, Teller} = {1000, 50000, self()},
    Pids = [start_loaded(fun() -> receive {accounts, Accounts} -> account(0, Accounts, Teller) end end) || _ <- lists:seq(1, Count)],
    Accounts = list_to_tuple(Pids),
    [Pid ! {accounts, Accounts} || Pid <- Pids],
    Should = transfers(N, 1, Accounts, #{}),
    times(N, fun() -> receive transferred -> ok end end),
    [begin
        same(balance, ask(element(I, Accounts), balance), maps:get(I, Should, 0)),
        element(I, Accounts) ! stop
    end || I <- lists:seq(1, Count)].

transfers(0, _, _, Should) -> Should;
transfers(N, X0, Accounts, Should) ->
    Count = tuple_size(Accounts),
    {X1, X2, X3} = {next_random(X0), next_random(next_random(X0)), next_random(next_random(next_random(X0)))},
    From = 1 + X1 rem (Count - 1),
    To = From + 1 + X2 rem (Count - From),
    Amount = 1 + X3 rem 1000,
    element(From, Accounts) ! {transfer, To, Amount},
    Less = Should#{From => maps:get(From, Should, 0) - Amount},
    transfers(N - 1, X3, Accounts, Less#{To => maps:get(To, Less, 0) + Amount}).

account(Balance, Accounts, Teller) ->
    receive
        {transfer, To, Amount} ->
            ask(element(To, Accounts), {deposit, Amount}),
            Teller ! transferred,
            account(Balance - Amount, Accounts, Teller);
        {{deposit, Amount}, From} -> answer(From, ok), account(Balance + Amount, Accounts, Teller);
        {balance, From} -> answer(From, Balance), account(Balance, Accounts, Teller);
        stop -> ok
    end.

%% ---- classics ----

philosophers() ->
    {Table, Meals} = {20, 10000},
    Arbiter = start(fun() -> arbiter(Table, 0, #{}) end),
    wait_all(start_all([fun() -> times(Meals, fun() -> ask(Arbiter, {hungry, I}), Arbiter ! {done, I} end) end || I <- lists:seq(0, Table - 1)])),
    Arbiter ! stop.

%% The forks that are taken are bits.
arbiter(Table, Taken, Waits) ->
    receive
        {{hungry, I}, From} ->
            {NowTaken, NowWaits} = try_to_serve(I, Table, Taken, Waits#{I => From}),
            arbiter(Table, NowTaken, NowWaits);
        {done, I} ->
            Forks = forks(I, Table),
            same(forks, Taken band Forks, Forks),
            {Taken1, Waits1} = try_to_serve((I + Table - 1) rem Table, Table, Taken band bnot Forks, Waits),
            {Taken2, Waits2} = try_to_serve((I + 1) rem Table, Table, Taken1, Waits1),
            arbiter(Table, Taken2, Waits2);
        stop -> ok
    end.

forks(I, Table) -> (1 bsl I) bor (1 bsl ((I + 1) rem Table)).

try_to_serve(I, Table, Taken, Waits) ->
    Forks = forks(I, Table),
    case Waits of
        #{I := From} when Taken band Forks =:= 0 ->
            answer(From, eat),
            {Taken bor Forks, maps:remove(I, Waits)};
        _ -> {Taken, Waits}
    end.

barber() ->
    {Customers, Seats, Factory} = {5000, 1000, self()},
    Barber = start(fun() -> receive {room, Room} -> cut_hair(Room, 2) end end),
    Room = start(fun() -> waiting_room(Seats, Barber, queue:new(), 0, true) end),
    Barber ! {room, Room},
    send_customers(Customers, Room, Factory, 1),
    served(Customers, 0, [], Customers, Seats),
    Room ! stop,
    Barber ! stop.

send_customers(0, _, _, _) -> ok;
send_customers(N, Room, Factory, X) ->
    start(fun() -> customer(Room, Factory) end),
    Next = next_random(X),
    work(10 + Next rem 1000),
    send_customers(N - 1, Room, Factory, Next).

served(Customers, Customers, Back, _, _) -> same(customers_that_did_not_come_again, Back, []);
served(Customers, Served, Back, Inside, Seats) ->
    receive
        {again, From} -> send_again(Customers, Served, [From | Back], Inside - 1, Seats);
        served -> send_again(Customers, Served + 1, Back, Inside - 1, Seats)
    end.

send_again(Customers, Served, [From | Back], Inside, Seats) when Inside < Seats ->
    answer(From, again),
    served(Customers, Served, Back, Inside + 1, Seats);
send_again(Customers, Served, Back, Inside, Seats) -> served(Customers, Served, Back, Inside, Seats).

customer(Room, Factory) ->
    case ask(Room, enter) of
        full -> ask(Factory, again), customer(Room, Factory);
        cut -> Factory ! served
    end.

waiting_room(Seats, Barber, Waiting, Count, Sleeps) ->
    receive
        {enter, From} when Count =:= Seats -> answer(From, full), waiting_room(Seats, Barber, Waiting, Count, Sleeps);
        {enter, From} when Sleeps -> Barber ! {enter, From}, waiting_room(Seats, Barber, Waiting, Count, false);
        {enter, From} -> waiting_room(Seats, Barber, queue:in(From, Waiting), Count + 1, false);
        next when Count =:= 0 -> waiting_room(Seats, Barber, Waiting, 0, true);
        next ->
            {{value, From}, Rest} = queue:out(Waiting),
            Barber ! {enter, From},
            waiting_room(Seats, Barber, Rest, Count - 1, false);
        stop -> ok
    end.

cut_hair(Room, X) ->
    receive
        {enter, From} ->
            Next = next_random(X),
            work(10 + Next rem 1000),
            answer(From, cut),
            Room ! next,
            cut_hair(Room, Next);
        stop -> ok
    end.

smokers() ->
    {Count, Rounds} = {200, 1000},
    Pids = start_all([fun() -> smoke(0) end || _ <- lists:seq(1, Count)]),
    choose(Rounds, 1, list_to_tuple(Pids)),
    Smoked = [ask(Pid, smoked) || Pid <- Pids],
    same(smoked, lists:sum(Smoked), Rounds),
    [Pid ! stop || Pid <- Pids],
    wait_all(Pids).

choose(0, _, _) -> ok;
choose(N, X, Smokers) ->
    Y = next_random(X),
    Z = next_random(Y),
    ask(element(1 + Y rem tuple_size(Smokers), Smokers), {start, 10 + Z rem 1000}),
    choose(N - 1, Z, Smokers).

smoke(N) ->
    receive
        {{start, Steps}, From} -> answer(From, ok), work(Steps), smoke(N + 1);
        {smoked, From} -> answer(From, N), smoke(N);
        stop -> ok
    end.
