(* The squared sensitivity that gaussnoise/tables/planning/measure.py and gaussnoise/streams/reports.py
   compute, proved for integers. notebooks/proof.md says which step of the proof of privacy each
   theorem is; tests/test_sensitivity.py has Coq check this file, asks for the axioms that it rests on
   (none), and compares what its functions compute with what the program computes. *)

From Coq Require Import ZArith List Lia Bool.
Import ListNotations.
Open Scope Z_scope.

(* Vectors of integers. *)

Definition vector := list Z.

Fixpoint dot (u v : vector) : Z :=
  match u, v with
  | a :: u', b :: v' => a * b + dot u' v'
  | _, _ => 0
  end.

Definition square (u : vector) : Z := dot u u.

Definition scale (s : Z) (u : vector) : vector := map (Z.mul s) u.

Fixpoint minus (u v : vector) : vector :=
  match u, v with
  | a :: u', b :: v' => a - b :: minus u' v'
  | _, _ => []
  end.

Lemma dot_scale_l s u : forall v, dot (scale s u) v = s * dot u v.
Proof. induction u as [|a u IH]; intros [|b v]; simpl; try lia. unfold scale in IH. rewrite IH. lia. Qed.

Lemma dot_sym u : forall v, dot u v = dot v u.
Proof. induction u as [|a u IH]; intros [|b v]; simpl; try lia. rewrite IH. lia. Qed.

Lemma dot_scale_r s u v : dot u (scale s v) = s * dot u v.
Proof. rewrite dot_sym, dot_scale_l, dot_sym. reflexivity. Qed.

Lemma dot_app u u' : forall v v', length u = length v -> dot (u ++ u') (v ++ v') = dot u v + dot u' v'.
Proof.
  induction u as [|a u IH]; intros [|b v] v' H; simpl in *; try discriminate; try lia.
  injection H as H. rewrite (IH v v' H). lia.
Qed.

Lemma square_nonneg u : 0 <= square u.
Proof. unfold square. induction u as [|a u IH]; simpl; nia. Qed.

Lemma square_minus u : forall v, length u = length v -> square (minus u v) = square u + square v - 2 * dot u v.
Proof.
  unfold square. induction u as [|a u IH]; intros [|b v] H; cbn [dot minus length] in *; try discriminate; try reflexivity.
  injection H as H. rewrite (IH v H). ring.
Qed.

(* |<u, v>| <= M where M bounds both squared lengths. *)
Lemma dot_bound u v M : length u = length v -> square u <= M -> square v <= M -> Z.abs (dot u v) <= M.
Proof.
  intros H hu hv.
  assert (minus_side := square_nonneg (minus u v)).
  assert (plus_side := square_nonneg (minus u (scale (-1) v))).
  rewrite square_minus in minus_side by exact H.
  rewrite square_minus in plus_side by (unfold scale; rewrite map_length; exact H).
  rewrite dot_scale_r in plus_side.
  replace (square (scale (-1) v)) with (square v) in plus_side.
  - lia.
  - unfold square. rewrite dot_scale_l, dot_scale_r. lia.
Qed.

(* Kronecker products. *)

Fixpoint kron (u v : vector) : vector :=
  match u with
  | [] => []
  | a :: u' => scale a v ++ kron u' v
  end.

Lemma length_kron u v : length (kron u v) = (length u * length v)%nat.
Proof. induction u as [|a u IH]; simpl; [reflexivity|]. unfold scale. rewrite app_length, map_length, IH. reflexivity. Qed.

Theorem dot_kron u : forall v u' v', length u = length v -> length u' = length v' ->
  dot (kron u u') (kron v v') = dot u v * dot u' v'.
Proof.
  induction u as [|a u IH]; intros [|b v] u' v' H H'; simpl in *; try discriminate; try lia.
  injection H as H.
  rewrite dot_app by (unfold scale; rewrite !map_length; exact H').
  rewrite dot_scale_l, dot_scale_r, (IH v u' v' H H'). lia.
Qed.

(* The answers on a row x: on each set T of attributes, s_T times the Kronecker product of the
   columns of the attributes' contrasts. An attribute may have other contrasts in each set. *)

Definition plan := list (list nat * Z).
Definition row := nat -> nat.

Fixpoint product (T : list nat) (m : nat -> Z) : Z :=
  match T with
  | [] => 1
  | i :: T' => m i * product T' m
  end.

(* The sum over T of s_T^2 times the product of the numbers m that belong to T. *)
Fixpoint form_by (p : plan) (m : list nat -> nat -> Z) : Z :=
  match p with
  | [] => 0
  | (T, s) :: p' => s * s * product T (m T) + form_by p' m
  end.

Lemma product_ext T m m' : (forall i, In i T -> m i = m' i) -> product T m = product T m'.
Proof.
  induction T as [|i T IH]; intros H; simpl; [reflexivity|].
  rewrite (H i) by (left; reflexivity). rewrite IH; [reflexivity|]. intros j hj. apply H. right. exact hj.
Qed.

Section Sets.

Variable column : nat -> nat -> vector.   (* of an attribute, at a category, in one set *)
Hypothesis same_length : forall i c c', length (column i c) = length (column i c').

Fixpoint on (T : list nat) (x : row) : vector :=
  match T with
  | [] => [1]
  | i :: T' => kron (column i (x i)) (on T' x)
  end.

Lemma length_on T x y : length (on T x) = length (on T y).
Proof. induction T as [|i T IH]; simpl; [reflexivity|]. rewrite !length_kron, IH, (same_length i (x i) (y i)). reflexivity. Qed.

Definition inner (x y : row) : nat -> Z := fun i => dot (column i (x i)) (column i (y i)).

Lemma dot_on T x y : dot (on T x) (on T y) = product T (inner x y).
Proof.
  induction T as [|i T IH]; simpl; [reflexivity|].
  rewrite dot_kron, IH by (apply same_length || apply length_on). reflexivity.
Qed.

End Sets.

Lemma product_bound T m longest : (forall i, 0 <= m i <= longest i) -> 0 <= product T m <= product T longest.
Proof.
  intros H. induction T as [|i T IH]; simpl; [lia|]. specialize (H i). nia.
Qed.

Section Tables.

Variable column : list nat -> nat -> nat -> vector.   (* in a set, of an attribute, at a category *)
Hypothesis same_length : forall T i c c', length (column T i c) = length (column T i c').

Fixpoint answer (p : plan) (x : row) : vector :=
  match p with
  | [] => []
  | (T, s) :: p' => scale s (on (column T) T x) ++ answer p' x
  end.

(* The inner product of the answers on two rows is the sum over T of s_T^2 times the product of the
   columns' inner products. *)
Theorem dot_answer p x y : dot (answer p x) (answer p y) = form_by p (fun T => inner (column T) x y).
Proof.
  induction p as [|[T s] p IH]; simpl; [reflexivity|].
  rewrite dot_app by (unfold scale; rewrite !map_length; apply length_on; apply same_length).
  rewrite dot_scale_l, dot_scale_r, dot_on, IH by apply same_length. lia.
Qed.

Variable longest : list nat -> nat -> Z.   (* the numbers that the strategies of a set state *)
Hypothesis longest_is : forall T i c, square (column T i c) <= longest T i.

(* Rows added or removed. Some attributes count with the columns of a row, others with their longest
   ones. *)
Variable free : nat -> bool.

Definition counted (x : row) (T : list nat) (i : nat) : Z :=
  if free i then square (column T i (x i)) else longest T i.

Theorem added p x : square (answer p x) <= form_by p (counted x).
Proof.
  unfold square. rewrite dot_answer. induction p as [|[T s] p IH]; simpl; [lia|].
  assert (b : 0 <= product T (inner (column T) x x) <= product T (counted x T)).
  { apply product_bound. intros i. unfold inner, counted.
    split; [apply square_nonneg|]. destruct (free i); [unfold square; lia | apply longest_is]. }
  nia.
Qed.

Definition highest (l : list Z) : Z := fold_right Z.max 0 l.

Lemma highest_above l a : In a l -> a <= highest l.
Proof.
  unfold highest. induction l as [|b l IH]; simpl; [intros []|]. intros [->|h]; [lia|]. specialize (IH h). lia.
Qed.

(* What the program computes: the largest number over rows with all categories of free attributes. *)
Theorem added_over p rows x :
  (exists r, In r rows /\ forall i, free i = true -> r i = x i) ->
  square (answer p x) <= highest (map (fun r => form_by p (counted r)) rows).
Proof.
  intros [r [inside same]].
  assert (equal : form_by p (counted x) = form_by p (counted r)).
  { induction p as [|[T s] p IH]; simpl; [reflexivity|]. rewrite IH.
    rewrite (product_ext T (counted x T) (counted r T)); [reflexivity|].
    intros i _. unfold counted. destruct (free i) eqn:f; [rewrite (same i f)|]; reflexivity. }
  assert (own := added p x). rewrite equal in own.
  apply Z.le_trans with (1 := own), highest_above.
  apply (in_map (fun r => form_by p (counted r))). exact inside.
Qed.

(* The stated number is not too large either: a row attains it whose other columns are longest. *)
Theorem added_attained p x :
  (forall T s i, In (T, s) p -> In i T -> free i = false -> square (column T i (x i)) = longest T i) ->
  square (answer p x) = form_by p (counted x).
Proof.
  intros H. unfold square. rewrite dot_answer. induction p as [|[T s] p IH]; simpl; [reflexivity|].
  rewrite IH by (intros T' s' i h; apply (H T' s' i); right; exact h).
  rewrite (product_ext T (inner (column T) x x) (counted x T)); [reflexivity|].
  intros i h. unfold inner, counted. destruct (free i) eqn:f; [reflexivity|].
  apply (H T s i); [left; reflexivity | exact h | exact f].
Qed.

End Tables.

(* Rows exchanged: here an attribute has the same contrasts in all sets. *)

Notation form p m := (form_by p (fun _ => m)).

Section Exchanged.

Variable column : nat -> nat -> vector.   (* of an attribute, at a category *)
Hypothesis same_length : forall i c c', length (column i c) = length (column i c').

Variable longest least : nat -> Z.   (* the numbers that a strategy states *)
Hypothesis longest_is : forall i c, square (column i c) <= longest i.
Hypothesis least_is : forall i c c', least i <= dot (column i c) (column i c').

Lemma inner_longest x y i : inner column x y i <= longest i.
Proof.
  unfold inner.
  assert (b := dot_bound _ _ _ (same_length i (x i) (y i)) (longest_is i (x i)) (longest_is i (y i))). lia.
Qed.

(* Rows exchanged: the form is affine in each m_i, so its least value is at a corner. *)

Definition set (m : nat -> Z) (i : nat) (v : Z) : nat -> Z := fun j => if Nat.eqb j i then v else m j.

Lemma set_other m i v j : j <> i -> set m i v j = m j.
Proof. intros H. unfold set. apply Nat.eqb_neq in H. rewrite H. reflexivity. Qed.

Lemma set_same m i v : set m i v i = v.
Proof. unfold set. rewrite Nat.eqb_refl. reflexivity. Qed.

Definition distinct (p : plan) : Prop := forall T s, In (T, s) p -> NoDup T.

Lemma product_affine T m i : NoDup T -> exists a b, forall v, product T (set m i v) = a + b * v.
Proof.
  intros H. induction H as [|j T hj hT IH].
  - exists 1, 0. intros v. simpl. lia.
  - destruct (Nat.eq_dec j i) as [->|ne].
    + exists 0, (product T m). intros v. simpl. rewrite set_same.
      rewrite (product_ext T (set m i v) m); [lia|].
      intros k hk. apply set_other. intros ->. contradiction.
    + destruct IH as [a [b IH]]. exists (m j * a), (m j * b). intros v. simpl.
      rewrite set_other by exact ne. rewrite IH. lia.
Qed.

Lemma form_affine p m i : distinct p -> exists a b, forall v, form p (set m i v) = a + b * v.
Proof.
  intros H. induction p as [|[T s] p IH].
  - exists 0, 0. intros v. simpl. lia.
  - destruct IH as [a [b IH]]. { intros T' s' h. apply (H T' s'). right. exact h. }
    destruct (product_affine T m i (H T s (or_introl eq_refl))) as [a' [b' IH']].
    exists (s * s * a' + a), (s * s * b' + b). intros v. simpl. rewrite IH, IH'. lia.
Qed.

Lemma form_ext p m m' : (forall T s i, In (T, s) p -> In i T -> m i = m' i) -> form p m = form p m'.
Proof.
  induction p as [|[T s] p IH]; intros H; simpl; [reflexivity|].
  rewrite (product_ext T m m'). 2: { intros i hi. apply (H T s i); [left; reflexivity | exact hi]. }
  rewrite IH; [reflexivity|]. intros T' s' i h hi. apply (H T' s' i); [right; exact h | exact hi].
Qed.

(* The values of the form at all corners, that is for all sets of attributes that differ. *)
Fixpoint corners (p : plan) (attributes : list nat) (m : nat -> Z) : list Z :=
  match attributes with
  | [] => [form p m]
  | i :: rest => corners p rest (set m i (least i)) ++ corners p rest (set m i (longest i))
  end.

Lemma corners_ext p attributes : forall m m',
  (forall T s i, In (T, s) p -> In i T -> ~ In i attributes -> m i = m' i) ->
  corners p attributes m = corners p attributes m'.
Proof.
  induction attributes as [|k rest IH]; intros m m' H; simpl.
  - f_equal. apply form_ext. intros T s i h hi. apply (H T s i h hi). intros [].
  - f_equal; apply IH; intros T s i h hi no; unfold set;
      destruct (Nat.eqb i k) eqn:e; try reflexivity;
      apply Nat.eqb_neq in e; apply (H T s i h hi); intros [->|inside]; [apply e; reflexivity | contradiction | apply e; reflexivity | contradiction].
Qed.

Lemma a_corner_is_below p : distinct p -> forall attributes m,
  (forall i, least i <= longest i) ->
  (forall i, In i attributes -> least i <= m i <= longest i) ->
  exists c, In c (corners p attributes m) /\ c <= form p m.
Proof.
  intros hp attributes. induction attributes as [|i rest IH]; intros m order H; simpl.
  - exists (form p m). split; [left; reflexivity | lia].
  - destruct (form_affine p m i hp) as [a [b affine]].
    assert (own : form p m = a + b * m i).
    { rewrite <- affine. apply form_ext. intros T s j h hj. unfold set.
      destruct (Nat.eqb j i) eqn:e; [apply Nat.eqb_eq in e; subst; reflexivity | reflexivity]. }
    assert (within := H i (or_introl eq_refl)).
    assert (step : forall v, (v = least i \/ v = longest i) ->
      exists c, In c (corners p rest (set m i v)) /\ c <= form p (set m i v)).
    { intros v hv. apply IH; [exact order|]. intros j hj. unfold set.
      destruct (Nat.eqb j i) eqn:e; [apply Nat.eqb_eq in e; subst j | apply H; right; exact hj].
      specialize (order i). destruct hv as [-> | ->]; lia. }
    destruct (Z.le_ge_cases 0 b) as [up | down].
    + destruct (step (least i) (or_introl eq_refl)) as [c [inside below]].
      exists c. split; [apply in_or_app; left; exact inside|]. rewrite affine in below. nia.
    + destruct (step (longest i) (or_intror eq_refl)) as [c [inside below]].
      exists c. split; [apply in_or_app; right; exact inside|]. rewrite affine in below. nia.
Qed.

Definition lowest (l : list Z) : Z := fold_right Z.min (hd 0 l) l.

Lemma lowest_below l c : In c l -> lowest l <= c.
Proof.
  unfold lowest. generalize (hd 0 l). intros start. induction l as [|a l IH]; simpl; [intros []|].
  intros [->|h]; [lia|]. specialize (IH h). lia.
Qed.

(* What the program computes for rows that are exchanged and agree on public attributes. *)

Variable public : nat -> bool.

Definition lower (i : nat) : Z := if public i then longest i else least i.

Definition exchange (p : plan) (attributes : list nat) : Z :=
  2 * (form p longest - lowest (corners p attributes longest)).

Definition private (i : nat) : bool := negb (public i).

Definition raised (x y : row) (i : nat) : Z := if public i then longest i else inner column x y i.

Lemma product_split T m : product T m = product (filter public T) m * product (filter private T) m.
Proof.
  unfold private. induction T as [|i T IH]; simpl; [reflexivity|].
  destruct (public i); simpl; rewrite IH; ring.
Qed.

Lemma longest_nonneg i : 0 <= longest i.
Proof. assert (h := square_nonneg (column i 0%nat)). assert (h' := longest_is i 0%nat). lia. Qed.

Lemma on_difference T s x y : (forall i, public i = true -> x i = y i) ->
  square (minus (scale s (on column T x)) (scale s (on column T y)))
  <= 2 * (s * s * product T longest - s * s * product T (raised x y)).
Proof.
  intros agree.
  rewrite square_minus by (unfold scale; rewrite !map_length; apply length_on; exact same_length).
  unfold square. rewrite !dot_scale_l, !dot_scale_r, !dot_on by exact same_length.
  rewrite (product_split T (inner column x x)), (product_split T (inner column y y)), (product_split T (inner column x y)).
  rewrite (product_split T longest), (product_split T (raised x y)).
  assert (hp : forall i, In i (filter public T) -> public i = true).
  { intros i h. apply filter_In in h. apply h. }
  assert (hr : forall i, In i (filter private T) -> public i = false).
  { intros i h. apply filter_In in h. destruct h as [_ h]. unfold private in h. destruct (public i); [discriminate|reflexivity]. }
  set (P := filter public T) in *. set (R := filter private T) in *.
  rewrite (product_ext P (inner column y y) (inner column x x)) by (intros i h; unfold inner; rewrite (agree i (hp i h)); reflexivity).
  rewrite (product_ext P (inner column x y) (inner column x x)) by (intros i h; unfold inner; rewrite (agree i (hp i h)); reflexivity).
  rewrite (product_ext P (raised x y) longest) by (intros i h; unfold raised; rewrite (hp i h); reflexivity).
  rewrite (product_ext R (raised x y) (inner column x y)) by (intros i h; unfold raised; rewrite (hr i h); reflexivity).
  assert (bp : 0 <= product P (inner column x x) <= product P longest).
  { apply product_bound. intros i. unfold inner. split; [apply square_nonneg | apply longest_is]. }
  assert (bx : 0 <= product R (inner column x x) <= product R longest).
  { apply product_bound. intros i. unfold inner. split; [apply square_nonneg | apply longest_is]. }
  assert (by_ : 0 <= product R (inner column y y) <= product R longest).
  { apply product_bound. intros i. unfold inner. split; [apply square_nonneg | apply longest_is]. }
  assert (d := square_nonneg (minus (on column R x) (on column R y))).
  rewrite square_minus in d by (apply length_on; exact same_length). unfold square in d. rewrite !dot_on in d by exact same_length.
  assert (s2 : 0 <= s * s) by nia.
  set (D := product R (inner column x x) + product R (inner column y y) - 2 * product R (inner column x y)) in d.
  assert (e : product P (inner column x x) * D <= product P longest * (2 * product R longest - 2 * product R (inner column x y))).
  { apply Z.le_trans with (product P longest * D); [apply Z.mul_le_mono_nonneg_r; lia|].
    apply Z.mul_le_mono_nonneg_l; [lia | unfold D; lia]. }
  apply Z.le_trans with (s * s * (product P (inner column x x) * D)).
  - apply Z.eq_le_incl. unfold D. ring.
  - apply Z.le_trans with (s * s * (product P longest * (2 * product R longest - 2 * product R (inner column x y)))).
    + apply Z.mul_le_mono_nonneg_l; assumption.
    + apply Z.eq_le_incl. ring.
Qed.

Lemma minus_app u u' : forall v v', length u = length v -> minus (u ++ u') (v ++ v') = minus u v ++ minus u' v'.
Proof.
  induction u as [|c u IH]; intros [|d v] v' H; simpl in *; try discriminate; [reflexivity|].
  injection H as H. rewrite (IH v v' H). reflexivity.
Qed.

Lemma answer_difference p x y : (forall i, public i = true -> x i = y i) ->
  square (minus (answer (fun _ => column) p x) (answer (fun _ => column) p y)) <= 2 * (form p longest - form p (raised x y)).
Proof.
  intros agree. induction p as [|[T s] p IH]; [simpl; unfold square; simpl; lia|].
  cbn [answer form_by].
  rewrite minus_app by (unfold scale; rewrite !map_length; apply length_on; exact same_length).
  unfold square. rewrite dot_app by reflexivity. fold (square (minus (scale s (on column T x)) (scale s (on column T y)))).
  fold (square (minus (answer (fun _ => column) p x) (answer (fun _ => column) p y))).
  assert (h := on_difference T s x y agree). lia.
Qed.

End Exchanged.

Theorem exchanged column (same_length : forall i c c', length (column i c) = length (column i c'))
  longest least (longest_is : forall i c, square (column i c) <= longest i)
  (least_is : forall i c c', least i <= dot (column i c) (column i c'))
  public p attributes x y : distinct p ->
  (forall T s i, In (T, s) p -> In i T -> In i attributes) ->
  (forall i, public i = true -> x i = y i) ->
  square (minus (answer (fun _ => column) p x) (answer (fun _ => column) p y))
  <= exchange longest (lower longest least public) p attributes.
Proof.
  intros hp all agree.
  assert (h := answer_difference column same_length longest longest_is public p x y agree).
  set (m := raised column longest public x y) in *.
  assert (order : forall i, lower longest least public i <= longest i).
  { intros i. unfold lower. destruct (public i); [lia|].
    assert (b := least_is i 0%nat 0%nat). assert (b' := longest_is i 0%nat). unfold square in b'. lia. }
  destruct (a_corner_is_below longest (lower longest least public) p hp attributes m order) as [c [inside below]].
  { intros i _. unfold m, raised, lower. destruct (public i); [lia|].
    split; [apply least_is | apply inner_longest; assumption]. }
  rewrite (corners_ext longest (lower longest least public) p attributes m longest) in inside.
  2: { intros T s i ht hi no. exfalso. apply no. apply (all T s i ht hi). }
  assert (b := lowest_below _ _ inside). unfold exchange. lia.
Qed.

(* Sums of vectors: a record that counts in parts, the rows of one person, the reports of one
   person over time. *)

Definition sum_of {A} (f : A -> Z) (l : list A) : Z := fold_right (fun a s => f a + s) 0 l.

Fixpoint plus (u v : vector) : vector :=
  match u, v with
  | a :: u', b :: v' => a + b :: plus u' v'
  | _, _ => []
  end.

Definition total {A} (n : nat) (u : A -> vector) (l : list A) : vector :=
  fold_right (fun a s => plus (u a) s) (repeat 0 n) l.

Lemma sum_of_le {A} (f g : A -> Z) l : (forall a, In a l -> f a <= g a) -> sum_of f l <= sum_of g l.
Proof.
  unfold sum_of. induction l as [|a l IH]; intros H; simpl; [lia|].
  assert (h := H a (or_introl eq_refl)). assert (t := IH (fun b hb => H b (or_intror hb))). lia.
Qed.

Lemma sum_of_eq {A} (f g : A -> Z) l : (forall a, In a l -> f a = g a) -> sum_of f l = sum_of g l.
Proof.
  intros H. apply Z.le_antisymm; apply sum_of_le; intros a h; rewrite (H a h); lia.
Qed.

Lemma sum_of_scale {A} (f : A -> Z) s l : sum_of (fun a => s * f a) l = s * sum_of f l.
Proof. unfold sum_of. induction l as [|a l IH]; simpl; lia. Qed.

Lemma sum_of_plus {A} (f g : A -> Z) l : sum_of (fun a => f a + g a) l = sum_of f l + sum_of g l.
Proof. unfold sum_of. induction l as [|a l IH]; simpl; lia. Qed.

Lemma length_plus u : forall v, length u = length v -> length (plus u v) = length u.
Proof. induction u as [|a u IH]; intros [|b v] H; simpl in *; try discriminate; auto. Qed.

Lemma length_total {A} n (u : A -> vector) l : (forall a, length (u a) = n) -> length (total n u l) = n.
Proof.
  intros H. induction l as [|a l IH]; simpl; [apply repeat_length|].
  rewrite length_plus by (rewrite IH; apply H). apply H.
Qed.

Lemma dot_plus_r w : forall u v, length u = length v -> dot w (plus u v) = dot w u + dot w v.
Proof.
  induction w as [|c w IH]; intros [|a u] [|b v] H; cbn [dot plus length] in *; try discriminate; try lia.
  injection H as H. rewrite (IH u v H). ring.
Qed.

Lemma dot_zero w : forall n, dot w (repeat 0 n) = 0.
Proof. induction w as [|c w IH]; intros [|n]; simpl; try lia. rewrite IH. lia. Qed.

Lemma dot_total {A} n (u : A -> vector) w l : (forall a, length (u a) = n) ->
  dot w (total n u l) = sum_of (fun a => dot w (u a)) l.
Proof.
  intros H. induction l as [|a l IH]; simpl; [apply dot_zero|].
  rewrite dot_plus_r by (rewrite H, length_total; auto). rewrite IH. reflexivity.
Qed.

Lemma square_total {A} n (u : A -> vector) l : (forall a, length (u a) = n) ->
  square (total n u l) = sum_of (fun a => sum_of (fun b => dot (u a) (u b)) l) l.
Proof.
  intros H. unfold square. rewrite dot_total by exact H. apply sum_of_eq. intros a _.
  rewrite dot_sym, dot_total by exact H. reflexivity.
Qed.

(* One person reports at the ticks of l; tick a changes the answers by u_a, and the measurements of
   all ticks by the Kronecker product of c_a, a column of the matrix over time, with u_a. *)
Theorem reports {A} (l : list A) n r (c u : A -> vector) M :
  (forall a, length (c a) = r) -> (forall a, length (u a) = n) -> (forall a, In a l -> square (u a) <= M) ->
  square (total (r * n) (fun a => kron (c a) (u a)) l)
  <= M * sum_of (fun a => sum_of (fun b => Z.abs (dot (c a) (c b))) l) l.
Proof.
  intros hc hu bound.
  rewrite square_total by (intros a; rewrite length_kron, hc, hu; reflexivity).
  rewrite <- sum_of_scale. apply sum_of_le. intros a ha.
  rewrite <- sum_of_scale. apply sum_of_le. intros b hb.
  rewrite dot_kron by (rewrite ?hc, ?hu; reflexivity).
  assert (same : length (u a) = length (u b)) by (rewrite !hu; reflexivity).
  assert (h := dot_bound _ _ _ same (bound a ha) (bound b hb)).
  assert (e := Z.abs_mul (dot (c a) (c b)) (dot (u a) (u b))). nia.
Qed.

(* Parts w_a >= 0 of a record at cells a; or k rows of a person, each with w = 1. *)
Theorem in_parts {A} (l : list A) n (w : A -> Z) (u : A -> vector) M :
  (forall a, length (u a) = n) -> (forall a, In a l -> square (u a) <= M) -> (forall a, In a l -> 0 <= w a) ->
  square (total n (fun a => scale (w a) (u a)) l) <= M * (sum_of w l * sum_of w l).
Proof.
  intros hu bound positive.
  rewrite square_total by (intros a; unfold scale; rewrite map_length; apply hu).
  apply Z.le_trans with (sum_of (fun a => M * sum_of w l * w a) l).
  2: { rewrite sum_of_scale. lia. }
  apply sum_of_le. intros a ha. replace (M * sum_of w l * w a) with (M * w a * sum_of w l) by ring.
  rewrite <- sum_of_scale. apply sum_of_le. intros b hb. rewrite dot_scale_l, dot_scale_r.
  assert (same : length (u a) = length (u b)) by (rewrite !hu; reflexivity).
  assert (h := dot_bound _ _ _ same (bound a ha) (bound b hb)).
  assert (0 <= w a * w b) by (assert (pa := positive a ha); assert (pb := positive b hb); nia). nia.
Qed.

(* The parts of a clipped number a of m steps: gaussnoise/tables/counting/numbers.py. *)

Theorem parts m a : 0 <= a <= m -> 0 <= m - a /\ 0 <= a /\ (m - a) + a = m.
Proof. lia. Qed.

Theorem parts_with_squares m a : 0 < m -> 0 <= a <= m ->
  let q := a * a / m in
  0 <= m - 2 * a + q /\ 0 <= 2 * (a - q) /\ 0 <= q /\ (m - 2 * a + q) + 2 * (a - q) + q = m.
Proof.
  intros hm ha q.
  assert (low : m * q <= a * a) by (apply Z.mul_div_le; lia).
  assert (high : a * a < m * (q + 1)).
  { unfold q. replace (a * a / m + 1) with (Z.succ (a * a / m)) by lia. apply Z.mul_succ_div_gt. lia. }
  assert (0 <= q) by (apply Z.div_pos; nia).
  assert (q <= a) by (apply Z.div_le_upper_bound; nia).
  assert (2 * a - m <= q) by (apply Z.div_le_lower_bound; [lia | nia]).
  lia.
Qed.

(* Of the first c of m parts, so many are in the last cell of a number that has w of all: what is
   between two ends, c and d, is divided into two parts, and all m parts into w and the others. *)
Definition portion m w c := (c * w + m / 2) / m.

Theorem parts_of_product m w c d : 0 < m -> 0 <= w <= m -> 0 <= c <= d ->
  0 <= portion m w d - portion m w c <= d - c /\ portion m w 0 = 0 /\ portion m w m = w.
Proof.
  intros hm hw h. unfold portion.
  assert (half : 0 <= m / 2 < m) by (split; [apply Z.div_pos | apply Z.div_lt_upper_bound]; lia).
  assert (grows : (c * w + m / 2) / m <= (d * w + m / 2) / m) by (apply Z.div_le_mono; nia).
  assert (least : (d * w + m / 2) / m <= (c * w + m / 2) / m + (d - c)).
  { rewrite <- Z.div_add by lia. apply Z.div_le_mono; nia. }
  repeat split; try lia.
  - rewrite Z.mul_0_l, Z.add_0_l. apply Z.div_small. lia.
  - rewrite Z.add_comm, Z.mul_comm, Z.div_add by lia. rewrite Z.div_small by lia. lia.
Qed.

Theorem parts_with_weight m w a : 0 < m -> 0 <= w <= m -> 0 <= a <= m ->
  let b := (w * a + m / 2) / m in 0 <= w - b /\ 0 <= b /\ (w - b) + b = w.
Proof.
  intros hm hw ha b.
  assert (half : 0 <= m / 2 < m) by (split; [apply Z.div_pos; lia | apply Z.div_lt_upper_bound; lia]).
  assert (0 <= b) by (apply Z.div_pos; nia).
  assert (b < w + 1) by (apply Z.div_lt_upper_bound; nia).
  lia.
Qed.

(* The contrasts of an attribute whose n categories are alike, C = n I - 11': the numbers that
   gaussnoise/solvers/tables/strategies.py states of them. *)

Definition alike (n : nat) (c : nat) : vector :=
  map (fun r => if Nat.eqb r c then Z.of_nat n - 1 else -1) (seq 0 n).

Lemma dot_map f g l : dot (map f l) (map g l) = sum_of (fun r : nat => f r * g r) l.
Proof. unfold sum_of. induction l as [|a l IH]; simpl; lia. Qed.

Lemma sum_of_one n : sum_of (fun _ : nat => 1) (seq 0 n) = Z.of_nat n.
Proof.
  assert (h : forall l : list nat, sum_of (fun _ => 1) l = Z.of_nat (length l)).
  { intros l. unfold sum_of. induction l as [|a l IH]; cbn [fold_right length]; lia. }
  rewrite h, seq_length. reflexivity.
Qed.

Definition here (c r : nat) : Z := if Nat.eqb r c then 1 else 0.

Lemma sum_of_here c : forall n a, (a <= c < a + n)%nat -> sum_of (here c) (seq a n) = 1.
Proof.
  assert (none : forall n a, (c < a)%nat -> sum_of (here c) (seq a n) = 0).
  { induction n as [|n IH]; intros a h; unfold sum_of; cbn; [reflexivity|]. unfold here at 1.
    replace (Nat.eqb a c) with false by (symmetry; apply Nat.eqb_neq; lia).
    unfold sum_of in IH. rewrite IH by lia. reflexivity. }
  induction n as [|n IH]; intros a h; [lia|]. unfold sum_of. cbn. unfold here at 1.
  destruct (Nat.eqb a c) eqn:e.
  - apply Nat.eqb_eq in e. unfold sum_of in none. rewrite none by lia. reflexivity.
  - apply Nat.eqb_neq in e. unfold sum_of in IH. rewrite IH by lia. reflexivity.
Qed.

Theorem alike_numbers n c d : (c < n)%nat -> (d < n)%nat ->
  dot (alike n c) (alike n d) = if Nat.eqb c d then Z.of_nat n * (Z.of_nat n - 1) else - Z.of_nat n.
Proof.
  intros hc hd. unfold alike. rewrite dot_map.
  set (N := Z.of_nat n).
  rewrite (sum_of_eq _ (fun r => N * N * (here c r * here d r) + (- N * here c r + (- N * here d r + 1)))).
  2: { intros r _. unfold here. destruct (Nat.eqb r c), (Nat.eqb r d); lia. }
  rewrite !sum_of_plus, !sum_of_scale, sum_of_one, !sum_of_here by lia.
  destruct (Nat.eqb c d) eqn:e.
  - apply Nat.eqb_eq in e. subst d.
    rewrite (sum_of_eq _ (here c)). 2: { intros r _. unfold here. destruct (Nat.eqb r c); reflexivity. }
    rewrite sum_of_here by lia. fold N. lia.
  - apply Nat.eqb_neq in e.
    rewrite (sum_of_eq _ (fun _ => 0 * 1)).
    2: { intros r _. unfold here. destruct (Nat.eqb r c) eqn:rc, (Nat.eqb r d) eqn:rd; try reflexivity.
         apply Nat.eqb_eq in rc. apply Nat.eqb_eq in rd. congruence. }
    rewrite sum_of_scale. fold N. lia.
Qed.
